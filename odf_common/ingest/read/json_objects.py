"""Lines of JSON objects to rows: all at once where all are good, otherwise exactly the good ones.

Good is what Arrow's parser makes one row of and what then fits its column, so that a line is judged alike wherever it
stands. Lines are parsed joined by newlines. As every line begins with `{` and ends with `}`, and no JSON has `{` behind
`}`, every newline lies between two objects: as many rows as lines means that each line is one object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from odf_common.ingest.messages import Problem
from odf_common.ingest.read.inference import MAX_SAMPLES, Columns
from odf_common.ingest.read.json_lines import text_problems
from odf_common.ingest.read.json_sieve import FAILURES, Sieve
from odf_common.ingest.read.lines import Indices, contains_byte, segments
from odf_common.ingest.read.mismatch import mismatch
from odf_common.ingest.read.row_schema import RowSchema

_SMALLEST = 256  # lines; fewer are looked at one by one where they cannot be parsed together
_PARTS = 8  # into which lines are cut that are not good together: one bad line costs an eighth more each time
_BACKSLASH = ord("\\")

Result = TypeVar("Result")
Parse = Callable[[pa.Array], pa.Table]
"""One row for each line, or one of FAILURES, which says nothing of which line it is about."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The rows of the good lines, which lines those are, and what is wrong with the others."""

    rows: pa.Table
    lines: Indices
    problems: dict[int, Problem] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines one after another, and their rows; None where not all of them are good."""

    lines: Indices
    rows: pa.Table | None


def read_objects(lines: pa.Array, schema: RowSchema) -> Objects:
    """Rows of lines without blanks around them."""
    if schema.is_declared:
        return _sifted(lines, schema, *_runs(lines, partial(_parsed, schema=schema)))
    known = _with_samples(lines, schema)
    runs, problems = _runs(lines, partial(_parsed_known, schema=known))
    doubtful = np.concatenate([np.empty(0, np.int64), *(run.lines for run in runs if run.rows is None)])
    widened, refused = _with_new_columns(lines, doubtful, schema) if len(doubtful) else (known, {})
    if widened.input != known.input:
        runs, problems = _runs(lines, partial(_parsed, schema=widened), refused)
    elif refused:
        runs = [run if run.rows is not None else _Run(_without(run.lines, refused), None) for run in runs]
    return _sifted(lines, widened, runs, problems | refused)


def _runs(
    lines: pa.Array, parse: Parse, refused: Sequence[int] | dict[int, Problem] = ()
) -> tuple[list[_Run], dict[int, Problem]]:
    """All lines that may be parsed, in runs as long as they can be, and what is wrong with the texts of the others."""

    def read(start: int, end: int) -> tuple[list[_Run], dict[int, Problem]]:
        problems = {start + line: problem for line, problem in text_problems(lines[start:end]).items()}
        places = np.arange(start, end)
        return list(_good_runs(lines, _without(places, {*problems, *refused}), parse)), problems

    parts = _in_parallel(read, segments(lines))
    runs = [run for part, _ in parts for run in part]
    return runs, {line: problem for _, problems in parts for line, problem in problems.items()}


def _good_runs(lines: pa.Array, places: Indices, parse: Parse) -> Iterator[_Run]:
    """Lines that are good together, or too few for another try."""
    if not len(places):
        return
    try:
        yield _Run(places, parse(_taken(lines, places)))
        return
    except FAILURES:
        if len(places) <= _SMALLEST:
            yield _Run(places, None)
            return
    for part in np.array_split(places, _PARTS):
        yield from _good_runs(lines, part, parse)


def _sifted(lines: pa.Array, schema: RowSchema, runs: Sequence[_Run], problems: dict[int, Problem]) -> Objects:
    """All rows; of the runs that are not good together, the good lines are."""
    tables, places = [schema.table.empty_table()], [np.empty(0, np.int64)]
    sieve = Sieve(schema, partial(_parsed, schema=schema))
    for run in runs:
        if run.rows is not None:
            tables.append(run.rows)
            places.append(run.lines)
            continue
        rows, good, bad = sieve.sift(_taken(lines, run.lines))
        problems.update({int(run.lines[line]): problem for line, problem in bad.items()})
        tables.append(rows)
        places.append(run.lines[good])
    rows = tables[1] if len(tables) == 2 else pa.concat_tables(tables).combine_chunks()
    return Objects(rows, np.concatenate(places), problems)


def _taken(lines: pa.Array, places: Indices) -> pa.Array:
    if places.size and places[-1] - places[0] == len(places) - 1:
        return lines[int(places[0]) : int(places[-1]) + 1]
    return lines.take(pa.array(places, pa.int64()))


def _without(places: Indices, left_out: Sequence[int] | set[int] | dict[int, Problem]) -> Indices:
    return np.setdiff1d(places, np.fromiter(left_out, np.int64, len(left_out))) if left_out else places


def _in_parallel(read: Callable[[int, int], Result], parts: Sequence[tuple[int, int]]) -> list[Result]:
    if len(parts) == 1:
        return [read(*parts[0])]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(read, *zip(*parts, strict=True)))


def _with_samples(lines: pa.Array, schema: RowSchema) -> RowSchema:
    """The schema; with the columns of the first lines if they bring any."""
    try:
        _parsed_known(lines[:_SMALLEST], schema)
    except FAILURES:
        return _with_new_columns(lines, np.arange(min(len(lines), MAX_SAMPLES)), schema)[0]
    return schema


def _with_new_columns(lines: pa.Array, doubtful: Indices, schema: RowSchema) -> tuple[RowSchema, dict[int, Problem]]:
    """The schema with the columns that the first and these lines bring, and those whose columns nobody can take."""
    columns = Columns(schema.input)
    refused = {}
    for line in np.union1d(np.arange(min(len(lines), MAX_SAMPLES)), doubtful).tolist():
        try:
            record = orjson.loads(lines[line].as_py())
        except orjson.JSONDecodeError:
            continue
        # A record that is bad anyway brings no columns.
        if isinstance(record, dict) and mismatch(record, schema) is None:
            problem = columns.add(record)
            if problem is not None:
                refused[line] = problem
    return schema.widened(columns.schema), refused


def _parsed_known(lines: pa.Array, schema: RowSchema) -> pa.Table:
    """The rows, if Arrow, asked to infer what it is not told, finds nothing but nulls beyond the known columns."""
    if len(lines) and not len(schema.input):
        raise ValueError("no columns are known")
    *others, last = schema.wire
    for wire in others:
        try:
            return _covered(lines, wire, schema)
        except FAILURES:
            continue
    return _covered(lines, last, schema)


def _covered(lines: pa.Array, wire: pa.Schema, schema: RowSchema) -> pa.Table:
    found = _parse(lines, wire, "infer")
    if not all(
        pa.types.is_null(column.type)
        if wire.get_field_index(column.name) < 0
        else column.equals(wire.field(column.name))
        for column in found.schema
    ):
        raise ValueError("there are new columns")
    return schema.rows(found)


def _parsed(lines: pa.Array, schema: RowSchema) -> pa.Table:
    """One row for each line."""
    *others, last = schema.wire
    for wire in others:
        try:
            return schema.rows(_parse(lines, wire, "ignore"))
        except FAILURES:
            continue
    return schema.rows(_parse(lines, last, "ignore"))


def _parse(lines: pa.Array, wire: pa.Schema, unexpected: str) -> pa.Table:
    if not len(lines):
        return wire.empty_table()
    joined = _joined(lines)
    table = pa.json.read_json(
        pa.BufferReader(joined),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=joined.size + 1),
        parse_options=pa.json.ParseOptions(explicit_schema=wire, unexpected_field_behavior=unexpected),
    )
    if table.num_rows != len(lines):
        raise ValueError("a line holds one JSON object, and nothing else")
    # Arrow looks at neither: escapes that are no UTF-8, and decimals with more digits than their type has.
    if contains_byte(lines, _BACKSLASH) or any("decimal" in str(column.type) for column in wire):
        table.validate(full=True)
    return table


def _joined(lines: pa.Array) -> pa.Buffer:
    lists = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(lists, b"\n")[0].as_buffer()
