"""Lines of JSON objects to rows: all at once where all are good, otherwise exactly the good ones.

Good is what Arrow's parser makes one row of and what then fits its column, so that a line is judged alike wherever it
stands. Lines are parsed joined by newlines. As every line begins with `{` and ends with `}`, and no JSON has `{` behind
`}`, every newline lies between two objects: as many rows as lines means that each line is one object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read.inference import MAX_SAMPLES, Columns
from odf_common.ingest.read.json_lines import has_repeated_key, json_problem, text_problems
from odf_common.ingest.read.mismatch import mismatch
from odf_common.ingest.read.row_schema import RowSchema

_BLOCK_SIZE = 4 << 20  # bytes; of these the parser makes one chunk, each on a thread
_SERIAL_SIZE = 1 << 20  # bytes; handing over to threads costs more than parsing

_TWICE = re.compile(r"Column\(/(.*)\) was specified twice in row 0")

_Failure = (pa.ArrowException, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Objects:
    """The rows of the good lines, which lines those are, and what is wrong with the others."""

    rows: pa.Table
    lines: np.ndarray[Any, np.dtype[np.int64]]
    problems: dict[int, Problem] = field(default_factory=dict)


def read_objects(lines: pa.Array, schema: RowSchema) -> Objects:
    """Rows of lines without blanks around them."""
    problems = text_problems(lines)
    indices = np.arange(len(lines))
    if problems:
        indices = np.delete(indices, list(problems))
        lines = lines.take(pa.array(indices))
    if not schema.is_declared:
        parsed = _parsed_whole(lines, schema)
        if parsed is not None:
            return Objects(parsed, indices, problems)
        schema, refused = _with_new_columns(lines, schema)
        if refused:
            problems |= {int(indices[line]): problem for line, problem in refused.items()}
            kept = np.delete(np.arange(len(lines)), list(refused))
            indices, lines = indices[kept], lines.take(pa.array(kept))
    try:
        return Objects(_parsed(lines, schema), indices, problems)
    except _Failure:
        return _sifted(lines, schema, indices, problems)


def _sifted(lines: pa.Array, schema: RowSchema, indices: Any, problems: dict[int, Problem]) -> Objects:
    """The long way: foretell which lines are bad, with better words, so that few have to be parsed alone."""
    sieve = _Sieve(lines, schema)
    sieve.sift()
    order = np.argsort(np.array(sieve.lines, np.int64), kind="stable")
    rows = pa.concat_tables([schema.table.empty_table(), *sieve.pieces]).take(pa.array(order))
    found = {int(indices[line]): problem for line, problem in sieve.problems.items()}
    return Objects(rows, indices[np.sort(np.array(sieve.lines, np.int64))], problems | found)


class _Sieve:
    """Sorts lines into those that the parser takes and those that it does not."""

    def __init__(self, lines: pa.Array, schema: RowSchema) -> None:
        self._texts = lines
        self._schema = schema
        self.pieces: list[pa.Table] = []
        self.lines: list[int] = []
        self.problems: dict[int, Problem] = {}

    def sift(self) -> None:
        """Parse the lines that look good together, and where that fails look closer."""
        good = []
        for line, text in enumerate(self._texts.to_pylist()):
            problem = self._foretold(text)
            if problem is None:
                good.append(line)
            else:
                self.problems[line] = problem
        if not self._took(good):
            repeating = {line for line in good if has_repeated_key(self._texts[line].as_py())}
            self._take([line for line in good if line not in repeating])
            for line in sorted(repeating):
                self._take([line])

    def _foretold(self, text: bytes) -> Problem | None:
        """A problem that the parser would find as well; it finds others, too."""
        problem = json_problem(text)
        if problem is None:
            reason = mismatch(orjson.loads(text), self._schema)
            problem = None if reason is None else Problem(Code.WRONG_TYPE, reason)
        return problem

    def _take(self, lines: Sequence[int]) -> None:
        """Take those of the lines that the parser takes; halves of them, where there is one that it does not."""
        if len(lines) > 1 and not self._took(lines):
            middle = len(lines) // 2
            self._take(lines[:middle])
            self._take(lines[middle:])
        elif len(lines) == 1:
            try:
                self._parse(lines)
            except _Failure as error:
                self.problems[lines[0]] = _problem_of(error)

    def _took(self, lines: Sequence[int]) -> bool:
        try:
            self._parse(lines)
        except _Failure:
            return False
        return True

    def _parse(self, lines: Sequence[int]) -> None:
        if lines:
            self.pieces.append(_parsed(self._texts.take(pa.array(lines)), self._schema))
            self.lines.extend(lines)


def _with_new_columns(lines: pa.Array, schema: RowSchema) -> tuple[RowSchema, dict[int, Problem]]:
    """The schema with the columns that lines bring, and the lines whose columns nobody can take."""
    columns = Columns(schema.input)
    refused = _add_columns(columns, lines[:MAX_SAMPLES], schema)
    if not refused and len(lines) > MAX_SAMPLES and _parsed_whole(lines, schema.widened(columns.schema)) is not None:
        return schema.widened(columns.schema), {}
    columns = Columns(schema.input)
    refused = _add_columns(columns, lines, schema)
    return schema.widened(columns.schema), refused


def _add_columns(columns: Columns, lines: pa.Array, schema: RowSchema) -> dict[int, Problem]:
    refused = {}
    for index, text in enumerate(lines.to_pylist()):
        try:
            record = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        # A record that is bad anyway brings no columns.
        if isinstance(record, dict) and mismatch(record, schema) is None:
            problem = columns.add(record)
            if problem is not None:
                refused[index] = problem
    return refused


def _parsed_whole(lines: pa.Array, schema: RowSchema) -> pa.Table | None:
    """The rows, if Arrow, asked to infer what it is not told, finds nothing but nulls beyond the known columns."""
    if len(lines) and not len(schema.input):
        return None
    for wire in schema.wire:
        try:
            found = _parse(lines, wire, "infer")
            return schema.rows(found) if _is_covered(found.schema, wire) else None
        except _Failure:
            continue
    return None


def _is_covered(found: pa.Schema, wire: pa.Schema) -> bool:
    return all(
        pa.types.is_null(column.type)
        if wire.get_field_index(column.name) < 0
        else column.equals(wire.field(column.name))
        for column in found
    )


def _parsed(lines: pa.Array, schema: RowSchema) -> pa.Table:
    """One row for each line, or an error that says nothing of which line it is about."""
    *others, last = schema.wire
    for wire in others:
        try:
            return schema.rows(_parse(lines, wire, "ignore"))
        except _Failure:
            continue
    return schema.rows(_parse(lines, last, "ignore"))


def _parse(lines: pa.Array, wire: pa.Schema, unexpected: str) -> pa.Table:
    if not len(lines):
        return wire.empty_table()
    joined = _joined(lines)
    longest = pc.max(pc.binary_length(lines)).as_py()
    table = pa.json.read_json(
        pa.BufferReader(joined),
        read_options=pa.json.ReadOptions(
            use_threads=joined.size > _SERIAL_SIZE,
            # The parser sets a whole block aside, however little there is to read.
            block_size=min(joined.size + 1, max(_BLOCK_SIZE, longest + 2)),
        ),
        parse_options=pa.json.ParseOptions(explicit_schema=wire, unexpected_field_behavior=unexpected),
    )
    if table.num_rows != len(lines):
        raise ValueError("a line holds one JSON object, and nothing else")
    table.validate(full=True)
    return table


def _joined(lines: pa.Array) -> pa.Buffer:
    lists = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(lists, b"\n")[0].as_buffer()


def _problem_of(error: BaseException) -> Problem:
    """What the parser says about a line that it got alone."""
    text = str(error).split("\n", 1)[0].removeprefix("JSON parse error: ")
    twice = _TWICE.fullmatch(text)
    if twice is not None:
        return Problem(Code.DUPLICATE_KEY, f"column {twice[1].replace('/', '.')!r} is given twice")
    return Problem(Code.WRONG_TYPE, text.removesuffix(" in row 0"))
