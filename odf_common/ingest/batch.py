"""One batch: raw messages in, the rows of a slice and what the block says of them out.

    messages → read_rows → merge → complete → Batch

`make_batch` is all of it for a batch in memory. Payloads of any size take the same steps part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.errors import MalformedBytesError
from odf_common.ingest.errors import BadInputSchemaError
from odf_common.ingest.evolution import data_schema_with
from odf_common.ingest.final_rows import (
    Times,
    conformed,
    largest_event_time,
    late_rows,
    normalized,
    stored_columns,
    with_event_time,
    with_system_columns,
    with_times,
)
from odf_common.ingest.merge import (
    Merged,
    MergeState,
    RefusedRowsError,
    SnapshotRefusedError,
    merge,
)
from odf_common.ingest.messages import Code, Problem, Unreadable
from odf_common.ingest.read.records import Records
from odf_common.ingest.source import SourcePlan, check_columns, data_columns
from odf_common.metadata.events import SetDataSchema
from odf_common.metadata.sources import MergeStrategyAppend, MergeStrategyChangelogStream, MergeStrategySnapshot
from odf_common.timestamp import Timestamp

Preprocess = Callable[[pa.Table], pa.Table]
"""The queries of a source: the table `input` in, the output of the last query out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What becomes of a batch of messages. `records` + `derived` = rows + `duplicates` + `unreadable`."""

    rows: pa.Table | None
    """All columns in their final order and types, ready for the slice writer; None if nothing is new."""
    set_data_schema: SetDataSchema | None
    """The dataset's first schema, or one with new columns."""
    data_schema: pa.Schema | None
    """The dataset's columns after this batch: what the plan of the next one needs."""
    messages: int
    records_read: int
    """Records in the messages, before any query."""
    records: int
    duplicates: int
    unreadable: list[Unreadable]
    max_event_time: Timestamp | None
    """The largest event time, as far as it may move the watermark."""
    derived: int = 0
    """Rows that no record stands for: correct-from rows, and what a Snapshot retracts."""
    late: int = 0
    """Rows from before the watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """Rows of messages, ready to be merged."""

    rows: pa.Table | None
    """In the types of the dataset, with all its data columns, and the operation where the merge strategy takes it; None
    where there is no data frame: no rows, of which no columns are known either. Then nothing happens, whatever the
    strategy; while a table without rows is an empty snapshot."""
    times: pa.ChunkedArray
    """Of the message of each row."""
    schema: pa.Schema | None
    """The dataset's schema with these rows; the plan's own if they bring nothing new."""
    records_read: int
    """Records in the messages, before any query."""
    unreadable: list[Unreadable] = field(default_factory=list)
    letters: Callable[[Sequence[tuple[int, Problem]]], list[Unreadable]] | None = None
    """Dead letters of rows that cannot be merged; None where it is not known which records they came from."""


def make_batch(
    plan: SourcePlan,
    messages: pa.Table,
    *,
    next_offset: int,
    system_time: Timestamp,
    state: MergeState = None,
    preprocess: Preprocess | None = None,
    watermark: Timestamp | None = None,
    max_ahead_s: float | None = None,
    accept_new_columns: bool = True,
) -> Batch:
    """Read, preprocess, merge and complete the rows of messages (schema `MESSAGES`).

    `state` is what the merge strategy compares with, `watermark` the dataset's before this batch.

    BadInputSchemaError or IncompatibleSchemaError when the columns do not fit the dataset, SnapshotRefusedError when
    the messages are no snapshot that can be taken, RefusedRowsError when rows of a query cannot be merged.
    """
    read = read_rows(plan, plan.reader.read(messages), preprocess=preprocess, accept_new_columns=accept_new_columns)
    return batch_of(
        plan,
        read,
        messages=messages.num_rows,
        next_offset=next_offset,
        system_time=system_time,
        state=state,
        watermark=watermark,
        max_ahead_s=max_ahead_s,
    )


def batch_of(
    plan: SourcePlan,
    read: ReadRows,
    *,
    messages: int,
    next_offset: int,
    system_time: Timestamp,
    state: MergeState = None,
    watermark: Timestamp | None = None,
    max_ahead_s: float | None = None,
) -> Batch:
    """Merge and complete rows that were read, in memory."""
    merged = merge_rows(plan, read, state)
    return complete(
        plan,
        merged,
        times=read.times,
        schema=read.schema,
        next_offset=next_offset,
        system_time=system_time,
        watermark=watermark,
        max_ahead_s=max_ahead_s,
        messages=messages,
        records_read=read.records_read,
        unreadable=sorted([*read.unreadable, *letters_of(read, merged)], key=_place),
    )


def read_rows(
    plan: SourcePlan,
    records: Records,
    *,
    preprocess: Preprocess | None = None,
    accept_new_columns: bool = True,
) -> ReadRows:
    """From records, as a reader of the plan gives them, to rows that can be merged.

    BadInputSchemaError or IncompatibleSchemaError when the columns do not fit the dataset. SnapshotRefusedError when a
    record of a snapshot cannot be read: what it says would look as if it were gone.
    """
    if plan.has_preprocess != (preprocess is not None):
        raise ValueError("a preprocess function is given exactly where the source has a preprocess step")
    unreadable = _without_empty(records) if _may_be_empty(plan) else records.unreadable
    if unreadable and isinstance(plan.source.merge, MergeStrategySnapshot):
        raise SnapshotRefusedError(_incomplete(unreadable))
    rows, times, letters = records.rows, records.timestamps, records.letters
    if preprocess is not None:
        rows = preprocess(rows) if rows.num_rows else pa.table({})
        times, letters = _latest(times, rows.num_rows), None
    prepared, schema = None, plan.data_schema
    if rows.num_rows or plan.declares_rows:
        prepared, schema = _prepared(plan, rows, accept_new_columns)
    return ReadRows(
        rows=prepared,
        times=times,
        schema=schema,
        records_read=records.count,
        unreadable=unreadable,
        letters=letters,
    )


def merge_rows(plan: SourcePlan, read: ReadRows, state: MergeState) -> Merged | None:
    """What the rows add to the dataset; None where there is no data frame."""
    if read.rows is None:
        return None
    return merge(plan.source.merge, read.rows, state, vocabulary=plan.vocabulary)


def letters_of(read: ReadRows, merged: Merged | None) -> list[Unreadable]:
    """The dead letters of rows that cannot be merged; RefusedRowsError where their records are not known."""
    if merged is None or not merged.refused:
        return []
    if read.letters is None:
        raise RefusedRowsError(merged.refused[0][1])
    return read.letters(merged.refused)


def complete(
    plan: SourcePlan,
    merged: Merged | None,
    *,
    times: Times,
    schema: pa.Schema | None,
    next_offset: int,
    system_time: Timestamp,
    watermark: Timestamp | None = None,
    max_ahead_s: float | None = None,
    messages: int = 0,
    records_read: int = 0,
    unreadable: Sequence[Unreadable] = (),
) -> Batch:
    """Merged rows, or a part of them in their order, with event times and system columns, and what there is to count.

    `times` are those of the messages, which `merged.source_row` counts in, or one time for all. `schema` is the
    dataset's with these rows: the plan's own, or an evolved one, for which the batch then has an event.
    """
    rows, largest, late, count = None, None, 0, 0
    if merged is not None and merged.rows.num_rows:
        assert schema is not None
        event_time = plan.vocabulary.event_time_column
        filled = with_times(merged, times, event_time, fallback=system_time)
        rows = with_system_columns(
            filled,
            merged.op,
            stored_columns(plan, schema),
            next_offset=next_offset,
            system_time=system_time,
            vocabulary=plan.vocabulary,
        )
        count = rows.num_rows
        largest = largest_event_time(filled[event_time], until=_guard(system_time, max_ahead_s))
        late = late_rows(filled[event_time], merged.op, watermark)
    elif not plan.declares_rows:
        schema = plan.data_schema
    duplicates, derived = (0, 0) if merged is None else (merged.duplicates, merged.derived)
    return Batch(
        rows=rows,
        set_data_schema=None if schema is None or schema is plan.data_schema else schema_event(schema),
        data_schema=schema,
        messages=messages,
        records_read=records_read,
        records=count - derived + duplicates + len(unreadable),
        duplicates=duplicates,
        unreadable=list(unreadable),
        max_event_time=largest,
        derived=derived,
        late=late,
    )


def schema_event(schema: pa.Schema) -> SetDataSchema:
    """The event that makes a schema the dataset's."""
    return SetDataSchema(raw_arrow_schema=encode_arrow_schema(schema))


def _prepared(plan: SourcePlan, rows: pa.Table, accept_new_columns: bool) -> tuple[pa.Table, pa.Schema]:
    """The rows as they are merged, and the dataset's schema with them."""
    vocabulary = plan.vocabulary
    rows = normalized(rows, vocabulary)
    check_columns(rows.schema, vocabulary, allows_operation=plan.takes_operations)
    rows = with_event_time(plan, rows)
    schema = data_schema_with(plan, rows.schema, accept_new_columns=accept_new_columns)
    wanted = data_columns(stored_columns(plan, schema), vocabulary)
    prepared = conformed(rows, wanted, may_lack=vocabulary.event_time_column)
    return _with_merge_columns(plan, rows, prepared), schema


def _with_merge_columns(plan: SourcePlan, rows: pa.Table, prepared: pa.Table) -> pa.Table:
    """With operations, and with empty columns for what the strategy names and no record has had so far."""
    name, strategy = plan.vocabulary.operation_type_column, plan.source.merge
    if name in rows.column_names:
        prepared = prepared.append_column(name, rows[name])
    elif isinstance(strategy, MergeStrategyChangelogStream) and plan.has_preprocess:
        raise BadInputSchemaError(f"merge strategy ChangelogStream needs the column {name!r}: the query gives none")
    if isinstance(strategy, MergeStrategyAppend):
        return prepared
    if plan.infers_columns and not plan.has_preprocess:
        compared = strategy.compare_columns or () if isinstance(strategy, MergeStrategySnapshot) else ()
        for missing in dict.fromkeys([*strategy.primary_key, *compared]):
            if missing not in prepared.column_names:
                prepared = prepared.append_column(missing, pa.nulls(rows.num_rows, pa.string()))
    return prepared


def _may_be_empty(plan: SourcePlan) -> bool:
    """An empty payload of known columns is a snapshot of nothing."""
    return isinstance(plan.source.merge, MergeStrategySnapshot) and plan.declares_rows


def _without_empty(records: Records) -> list[Unreadable]:
    return [letter for letter in records.unreadable if letter.code != Code.EMPTY]


def _incomplete(unreadable: Sequence[Unreadable]) -> Problem:
    first = unreadable[0]
    where = "" if first.index is None else f"record {first.index + 1}: "
    others = f" ({len(unreadable) - 1} more records cannot be read)" if len(unreadable) > 1 else ""
    return Problem(first.code, f"{where}{first.reason}{others}; a snapshot is taken as a whole or not at all")


def _guard(system_time: Timestamp, max_ahead_s: float | None) -> Timestamp | None:
    """The last moment that an event may have to move the watermark; None if there is none."""
    if max_ahead_s is None:
        return None
    try:
        return system_time.plus_seconds(max_ahead_s)
    except MalformedBytesError:  # behind the year 9999
        return None


def _place(letter: Unreadable) -> tuple[int, int, int]:
    return letter.partition, letter.offset, -1 if letter.index is None else letter.index


def _latest(times: pa.ChunkedArray, count: int) -> pa.ChunkedArray:
    """Rows of a query belong to no message: the newest one tells the time for all."""
    return pa.chunked_array([pa.repeat(pc.max(times), count).cast(times.type)])
