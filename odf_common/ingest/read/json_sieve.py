"""Few lines of JSON that cannot be parsed together: which of them are bad, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import numpy as np
import orjson
import pyarrow as pa
from pyarrow import types

from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read.json_lines import no_object, not_json
from odf_common.ingest.read.lines import Indices
from odf_common.ingest.read.mismatch import mismatch
from odf_common.ingest.read.row_schema import RowSchema

FAILURES = (pa.ArrowException, ValueError, OverflowError)

_TWICE = re.compile(r"Column\(/(.*)\) was specified twice in row 0")


class Sieve:
    """Foretells which lines are bad, with better words than the parser's, so that few have to be parsed alone."""

    def __init__(self, schema: RowSchema, parse: Callable[[pa.Array], pa.Table]) -> None:
        self._schema = schema
        self._parse = parse

    def sift(self, texts: pa.Array) -> tuple[pa.Table, Indices, dict[int, Problem]]:
        """The rows of the good lines, which lines those are, and what is wrong with the others."""
        lines = texts.to_pylist()
        problems = {line: problem for line, text in enumerate(lines) if (problem := self._foretold(text)) is not None}
        good = [line for line in range(len(lines)) if line not in problems]
        pieces: list[tuple[list[int], pa.Table]] = []
        if not self._took(texts, good, pieces):
            twice = {line: problem for line in good if (problem := self._repeated(lines[line])) is not None}
            problems |= twice
            self._take(texts, [line for line in good if line not in twice], pieces, problems)
        rows = pa.concat_tables([self._schema.table.empty_table(), *(table for _, table in pieces)])
        return rows, np.array([line for taken, _ in pieces for line in taken], np.int64), problems

    def _foretold(self, text: bytes) -> Problem | None:
        """A problem that the parser would find as well; it finds others, too."""
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            return not_json(error)
        if not isinstance(value, dict):
            return no_object(value)
        reason = mismatch(value, self._schema)
        return None if reason is None else Problem(Code.WRONG_TYPE, reason)

    def _repeated(self, text: bytes) -> Problem | None:
        """A column that is given twice; other keys may be."""
        pairs = json.loads(text, object_pairs_hook=tuple)
        name = _repeated_name(pairs, self._schema.input)
        return None if name is None else _given_twice(name)

    def _take(
        self,
        texts: pa.Array,
        lines: Sequence[int],
        pieces: list[tuple[list[int], pa.Table]],
        problems: dict[int, Problem],
    ) -> None:
        """Take those of the lines that the parser takes; halves of them, where there is one that it does not."""
        if len(lines) > 1 and not self._took(texts, lines, pieces):
            middle = len(lines) // 2
            self._take(texts, lines[:middle], pieces, problems)
            self._take(texts, lines[middle:], pieces, problems)
        elif len(lines) == 1:
            try:
                pieces.append((list(lines), self._parse(texts[lines[0] : lines[0] + 1])))
            except FAILURES as error:
                problems[lines[0]] = _problem_of(error)

    def _took(self, texts: pa.Array, lines: Sequence[int], pieces: list[tuple[list[int], pa.Table]]) -> bool:
        if not lines:
            return True
        try:
            pieces.append((list(lines), self._parse(texts.take(pa.array(lines)))))
        except FAILURES:
            return False
        return True


def _repeated_name(pairs: Sequence[tuple[str, object]], columns: pa.Schema | pa.StructType) -> str | None:
    """The path of the first known key that is given twice, lists left out."""
    seen = set()
    for name, value in pairs:
        index = columns.get_field_index(name)
        if index < 0:
            continue
        if name in seen:
            return name
        seen.add(name)
        data_type = columns.field(index).type
        if types.is_struct(data_type) and isinstance(value, tuple):
            inner = _repeated_name(value, data_type)
            if inner is not None:
                return f"{name}.{inner}"
    return None


def _given_twice(name: str) -> Problem:
    return Problem(Code.DUPLICATE_KEY, f"column {name!r} is given twice")


def _problem_of(error: BaseException) -> Problem:
    """What the parser says about a line that it got alone."""
    text = str(error).split("\n", 1)[0].removeprefix("JSON parse error: ")
    twice = _TWICE.fullmatch(text)
    if twice is not None:
        return _given_twice(twice[1].replace("/", "."))
    return Problem(Code.WRONG_TYPE, text.removesuffix(" in row 0"))
