"""How `odf try` shows what it found: tables for people, a line of JSON for each row for scripts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import typer

from odf_common.data.operation import OperationType
from odf_common.errors import OdfError
from odf_common.ingest.trial import Letter, Taken
from odf_common.metadata.fragments import DatasetVocabulary
from services.cli.slice_rows import json_line, plain_rows
from services.cli.tables import columns_text, printable

_BATCH = 10_000  # rows
_MAX_LETTERS = 20
_MAX_CELL = 40  # characters
_MAX_DATA = 60  # bytes
_WIDTH = 160  # characters, where there is no terminal


def fatal(error: OdfError | OSError) -> None:
    """Say on stderr why nothing could be tried."""
    code = error.code if isinstance(error, OdfError) else "Unreadable"
    message = str(error) if isinstance(error, OdfError) else f"{error.filename or 'file'}: {error.strerror or error}"
    typer.echo(json.dumps({"error": code, "message": message}, ensure_ascii=False), err=True)


def ndjson(name: str, taken: Taken, vocabulary: DatasetVocabulary) -> Iterator[str]:
    """The rows; what was refused goes to stderr."""
    for letter in taken.letters:
        typer.echo(json.dumps(_letter_document(name, letter), ensure_ascii=False), err=True)
    for row in _rows(taken):
        yield json_line(row)


def text(name: str, taken: Taken, vocabulary: DatasetVocabulary, *, limit: int) -> Iterator[str]:
    """The schema where it is new, the rows as a table, and what there is to count."""
    if taken.schema is not None:
        yield "schema\n  " + "\n  ".join(_ddl(taken.schema))
    rows = [_cells(row, vocabulary) for row in islice(_rows(taken), limit)]
    yield f"{printable(name)}: {_summary(taken)}"
    if rows:
        width = max(shutil.get_terminal_size((_WIDTH, 0)).columns, 20)
        table = columns_text(list(rows[0]), [list(row.values()) for row in rows])
        yield "\n".join(_cut(line, width) for line in table.splitlines())
    if taken.count > len(rows):
        yield f"… {taken.count - len(rows)} more rows (--limit)"
    yield from map(_letter_line, taken.letters[:_MAX_LETTERS])
    if len(taken.letters) > _MAX_LETTERS:
        yield f"… {len(taken.letters) - _MAX_LETTERS} more dead letters"


def _rows(taken: Taken) -> Iterator[dict[str, Any]]:
    for table in taken.rows:
        for batch in table.to_batches(_BATCH):
            yield from plain_rows(batch)


def _ddl(schema: pa.Schema) -> list[str]:
    from odf_common.data.ddl import format_ddl
    from odf_common.data.errors import UnsupportedTypeError

    try:
        return list(format_ddl(schema))
    except UnsupportedTypeError:
        return [f"{column.name} {column.type}" for column in schema]


def _summary(taken: Taken) -> str:
    parts = [f"{taken.records} records", f"{taken.count} rows"]
    parts += [f"{count} {name}" for name, count in (("derived", taken.derived), ("late", taken.late)) if count]
    parts += [f"{taken.duplicates} duplicates", f"{len(taken.letters)} dead letters"]
    return ", ".join(parts) + f", watermark {taken.watermark or '-'}"


def _cells(row: dict[str, Any], vocabulary: DatasetVocabulary) -> dict[str, str]:
    """The values as people read them, the operation as two characters."""
    operation = vocabulary.operation_type_column
    cells = {name: _cell(value) for name, value in row.items()}
    cells[operation] = OperationType(row[operation]).symbol
    return cells


def _cell(value: Any) -> str:
    if value is None:
        return ""
    found = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(found, _MAX_CELL)


def _cut(found: str, size: int) -> str:
    return found if len(found) <= size else found[: size - 1] + "…"


def _letter_document(name: str, letter: Letter) -> dict[str, Any]:
    return {
        "file": name,
        "record": letter.record,
        "code": letter.code,
        "reason": letter.reason,
        "value": letter.data.decode("utf-8", "replace"),
    }


def _letter_line(letter: Letter) -> str:
    where = "all of it" if letter.record is None else f"record {letter.record}"
    value = printable(letter.data[:_MAX_DATA].decode("utf-8", "replace"))
    shown = f"  {value}" if letter.record is not None and value else ""
    return f"refused: {where}: {letter.code}: {printable(letter.reason)}{shown}"
