"""Csv: any number of rows in a message, each message with its own header if there are headers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyarrow import types

from odf_common.ingest.messages import Code, Problem, Unreadable, unreadable
from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.csv_rows import QUOTES, CsvFormat, CsvRows, csv_rows
from odf_common.ingest.read.csv_types import cells, check_type, inferred_type
from odf_common.ingest.read.inference import MAX_SAMPLES
from odf_common.ingest.read.json_types import stored_type
from odf_common.ingest.read.lines import Indices
from odf_common.ingest.read.mismatch import shown_type
from odf_common.ingest.read.records import Records
from odf_common.ingest.read.row_schema import RowSchema
from odf_common.ingest.read.texts import LAST_EVENT_TIME_MS

_EVENT_TIME = pa.timestamp("ms", "UTC")
_SHOWN = 60  # characters
_MAX_COLUMNS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How CSV is spelled."""

    csv_format: CsvFormat = field(default_factory=CsvFormat)
    has_header: bool = False
    infers: bool = False


@dataclass(slots=True)
class _Part:
    """Rows with the same columns: their places among all rows, and their cells as texts."""

    rows: Indices
    texts: dict[str, pa.Array]


class CsvReader:
    """Reads rows of comma-separated values."""

    def __init__(self, schema: RowSchema, options: CsvOptions) -> None:
        for column in schema.input:
            check_type(column.type, column.name)
        self._schema = schema
        self._options = options

    def read(self, messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> Records:
        """See `Reader`."""
        found, bad = csv_rows(messages, self._options.csv_format, max_size=max_size)
        reading = _Reading(found, self._schema, self._options)
        rows, places = reading.run()
        bad += reading.unreadable(messages)
        bad.sort(key=lambda letter: (letter.partition, letter.offset, -1 if letter.index is None else letter.index))
        times = messages["timestamp"].take(pa.array(found.lines.message[places]))
        return Records(rows=rows, timestamps=times, unreadable=bad, letters=reading.letters(messages, places))

    def following(self, rows: pa.Schema) -> CsvReader:
        """See `Reader`."""
        return CsvReader(self._schema.following(rows), self._options)


class _Reading:
    """One batch on its way."""

    def __init__(self, found: CsvRows, schema: RowSchema, options: CsvOptions) -> None:
        self._found = found
        self._schema = schema
        self._options = options
        self._problems = dict(found.problems)
        self._bad_messages: dict[int, Problem] = {}

    def run(self) -> tuple[pa.Table, Indices]:
        """The good rows in their order, and their places among all."""
        parts = [part for names, rows in self._groups() for part in self._parsed(names, rows)]
        columns = self._columns(parts)
        tables, places = [], [np.empty(0, np.int64)]
        target = pa.schema(pa.field(c.name, stored_type(c.type), c.nullable) for c in columns)
        for part in parts:
            arrays = [self._converted(part, column) for column in columns]
            good = ~np.isin(part.rows, np.fromiter(self._problems, np.int64, len(self._problems)))
            table = pa.Table.from_arrays(arrays, names=columns.names).filter(pa.array(good))
            tables.append(pa.Table.from_arrays(table.columns, schema=target))
            places.append(part.rows[good])
        order = np.argsort(np.concatenate(places), kind="stable")
        rows = pa.concat_tables([target.empty_table(), *tables])
        if len(tables) > 1:
            rows = rows.take(pa.array(order))
        return rows, np.concatenate(places)[order]

    def unreadable(self, messages: pa.Table) -> list[Unreadable]:
        """Dead letters of rows, and of messages whose header says nothing."""
        lines, first = self._found.lines, int(self._options.has_header)
        letters = []
        for row, problem in self._problems.items():
            if int(lines.message[row]) not in self._bad_messages and self._found.index[row] >= first:
                letters.append(self._letter(messages, row, problem))
        for message, problem in self._bad_messages.items():
            data = messages["value"][message].as_py()
            letters.append(unreadable(messages, message, problem, index=None, data=data))
        return letters

    def letters(
        self, messages: pa.Table, places: Indices
    ) -> Callable[[Sequence[tuple[int, Problem]]], list[Unreadable]]:
        """Makes dead letters of rows that stand at these places."""
        return lambda refused: [self._letter(messages, int(places[row]), problem) for row, problem in refused]

    def _letter(self, messages: pa.Table, row: int, problem: Problem) -> Unreadable:
        lines, index = self._found.lines, int(self._found.index[row]) - int(self._options.has_header)
        return unreadable(messages, int(lines.message[row]), problem, index=index, data=lines.texts[row].as_py())

    def _groups(self) -> Iterator[tuple[list[str], Indices]]:
        """Column names and the rows that have them."""
        lines = self._found.lines
        if not self._options.has_header:
            rows = self._good(np.arange(len(lines.texts)))
            yield self._positional(rows), rows
            return
        first = np.flatnonzero(self._found.index == 0)
        heads = lines.texts.take(pa.array(first)).dictionary_encode()
        group = np.repeat(heads.indices.to_numpy(), np.diff(np.append(first, len(lines.texts))))
        for number, text in enumerate(heads.dictionary.to_pylist()):
            members = np.flatnonzero(group == number)
            names, problem = self._header(text, int(members[0]))
            if problem is not None:
                self._bad_messages |= dict.fromkeys(np.unique(lines.message[members]).tolist(), problem)
                continue
            yield names, self._good(members[self._found.index[members] > 0])

    def _good(self, rows: Indices) -> Indices:
        return np.setdiff1d(rows, np.fromiter(self._problems, np.int64, len(self._problems)), assume_unique=True)

    def _positional(self, rows: Indices) -> list[str]:
        if self._schema.is_declared:
            return [name for name, _ in self._schema.columns]
        known = [name for name in self._schema.input.names if name.startswith("column_")]
        if known or not len(rows):
            return known
        return [f"column_{number + 1}" for number in range(len(self._cells_of(self._found.lines.texts[int(rows[0])])))]

    def _header(self, text: bytes, row: int) -> tuple[list[str], Problem | None]:
        if row in self._problems:
            return [], self._problems[row]
        names = [name or "" for name in self._cells_of(pa.scalar(text))]
        if len(set(names)) < len(names) or "" in names:
            return names, Problem(Code.INVALID_CSV, "the header has a column without a name, or a name twice")
        if self._schema.is_declared and not set(names) & set(self._schema.input.names):
            return names, Problem(Code.INVALID_CSV, "the first row is no header: it names none of the columns")
        clash = {f"_{name}" for name in self._schema.reserved if name in names} & set(names)
        if clash:
            return names, Problem(Code.INVALID_CSV, f"two columns want to be called {min(clash)!r}")
        if not self._schema.is_declared and len(names) > _MAX_COLUMNS:
            return names, Problem(
                Code.TOO_MANY_COLUMNS, f"a row may have {_MAX_COLUMNS} columns, this has {len(names)}"
            )
        return names, None

    def _cells_of(self, text: pa.Scalar) -> list[str | None]:
        """The cells of one row."""
        table = self._parse(pa.array([text.as_py() + b"\n"], pa.binary()), None, threads=False)
        return [column[0].as_py() for column in table.columns]

    def _parsed(self, names: list[str], rows: Indices) -> list[_Part]:
        if not len(rows) or not names:
            return [_Part(rows[:0], {name: pa.array([], pa.string()) for name in names})]
        texts = self._found.lines.texts
        if len(rows) < len(texts):
            texts = texts.take(pa.array(rows))
        try:
            table = self._parse(texts, names, threads=True)
        except pa.ArrowInvalid:
            ragged: dict[int, int] = {}
            table = self._parse(texts, names, threads=False, ragged=ragged)
            for number, width in ragged.items():
                reason = f"expected {len(names)} values, found {width}"
                self._problems[int(rows[number])] = Problem(Code.INVALID_CSV, reason)
            rows = np.delete(rows, list(ragged))
        if table.num_rows == len(rows):
            return [_Part(rows, {name: _one(table[name]) for name in names})]
        if len(rows) == 1:
            self._problems[int(rows[0])] = QUOTES
            return []
        middle = len(rows) // 2
        return self._parsed(names, rows[:middle]) + self._parsed(names, rows[middle:])

    def _parse(
        self, texts: pa.Array, names: Sequence[str] | None, *, threads: bool, ragged: dict[int, int] | None = None
    ) -> pa.Table:
        marks = self._options.csv_format
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), b"\n")[0]

        def skip(row: pyarrow.csv.InvalidRow) -> str:
            assert ragged is not None
            ragged[row.number - 1] = row.actual_columns
            return "skip"

        longest = pc.max(pc.binary_length(texts)).as_py()
        return pyarrow.csv.read_csv(
            pa.BufferReader(joined.as_buffer()),
            read_options=pyarrow.csv.ReadOptions(
                column_names=names,
                autogenerate_column_names=names is None,
                use_threads=threads,
                block_size=max(4 << 20, 2 * longest + 2),
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=marks.separator,
                quote_char=marks.quote,
                escape_char=marks.escape or False,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=None if ragged is None else skip,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=None if names is None else dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _columns(self, parts: Sequence[_Part]) -> pa.Schema:
        """The known columns, and those that the rows bring."""
        if self._schema.is_declared:
            return self._schema.input
        fields = dict(self._schema.columns)
        for name in dict.fromkeys(name for part in parts for name in part.texts):
            row_name = f"_{name}" if name in self._schema.reserved else name
            if row_name in fields:
                continue
            data_type = self._new_type(name, [part.texts[name] for part in parts if name in part.texts])
            if data_type is not None:
                fields[row_name] = pa.field(row_name, data_type)
        return pa.schema([column for name, column in fields.items() if name not in self._schema.reserved])

    def _new_type(self, name: str, texts: list[pa.Array]) -> pa.DataType | None:
        if name == self._schema.event_time:
            return _EVENT_TIME
        return inferred_type(pa.concat_arrays(texts)[:MAX_SAMPLES]) if self._options.infers else pa.string()

    def _converted(self, part: _Part, column: pa.Field) -> pa.Array:
        texts = part.texts.get(column.name)
        if texts is None and not self._schema.is_declared and column.name.removeprefix("_") in self._schema.reserved:
            texts = part.texts.get(column.name.removeprefix("_"))
        if texts is None:
            texts = pa.nulls(len(part.rows), pa.string())
        seconds = self._options.infers and not self._schema.is_declared and column.name == self._schema.event_time
        values, bad = cells(texts, column.type, unix_seconds=seconds)
        expected = f"column {column.name!r}: expected {shown_type(column.type)}"
        for place in bad:
            self._refuse(part, place, f"{expected}, found {texts[place].as_py()[:_SHOWN]!r}")
        if not column.nullable:
            for place in np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)).tolist():
                self._refuse(part, place, f"column {column.name!r}: a value is required")
        if column.name == self._schema.event_time and (types.is_timestamp(column.type) or types.is_date(column.type)):
            late = values.cast(_EVENT_TIME, safe=False).cast(pa.int64()).fill_null(0).to_numpy() >= LAST_EVENT_TIME_MS
            for place in np.flatnonzero(late).tolist():
                reason = "the year 9999 or later is no time of an event"
                self._refuse(part, place, f"column {column.name!r}: {reason}, found {texts[place].as_py()}")
        return values

    def _refuse(self, part: _Part, place: int, reason: str) -> None:
        self._problems.setdefault(int(part.rows[place]), Problem(Code.WRONG_TYPE, reason))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
