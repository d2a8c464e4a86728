"""From merged rows to the rows of a slice: event times, order, system columns, the dataset's schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.data.operation import OperationType
from odf_common.data.slice_writer import stored_schema
from odf_common.data.system_columns import OFFSET_TYPE, OPERATION_TYPE, SYSTEM_TIME_TYPE
from odf_common.ingest.errors import IncompatibleSchemaError
from odf_common.ingest.merge.merged import Merged
from odf_common.ingest.read.texts import LAST_EVENT_TIME_MS
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.timestamp import Timestamp

EVENT_TIME = pa.timestamp("ms", "UTC")

Times: TypeAlias = pa.ChunkedArray | pa.Array | pa.Scalar
"""The time of the message of each row of the input, or the one time of all of them."""

_NS_PER_MS = 1_000_000


def normalized(rows: pa.Table, vocabulary: DatasetVocabulary) -> pa.Table:
    """Timestamps in milliseconds and UTC."""
    for index, column in enumerate(rows.schema):
        if types.is_timestamp(column.type) and column.type != EVENT_TIME:
            rows = rows.set_column(index, column.with_type(EVENT_TIME), _in_milliseconds(rows[column.name]))
    return rows


def with_event_time(plan: SourcePlan, rows: pa.Table) -> pa.Table:
    """With an event time column, empty if the rows bring none."""
    name = plan.vocabulary.event_time_column
    if name in rows.column_names:
        return rows
    known = plan.data_schema
    data_type = known.field(name).type if known is not None and name in known.names else EVENT_TIME
    return rows.add_column(0, pa.field(name, data_type), pa.nulls(rows.num_rows, data_type))


def stored_columns(plan: SourcePlan, schema: pa.Schema) -> pa.Schema:
    """The columns of slices with a schema, which is the plan's or an evolved one."""
    stored = plan.stored_schema if schema is plan.data_schema else None
    return stored or stored_schema(schema, plan.vocabulary)


def conformed(rows: pa.Table, wanted: Sequence[pa.Field], *, may_lack: str) -> pa.Table:
    """The rows with these columns in their types, null where the rows have none.

    IncompatibleSchemaError where a required column has a null, except in `may_lack`: that one is filled later.
    """
    fields = [column.with_nullable(True) if column.name == may_lack else column for column in wanted]
    columns = [_column(rows, column) for column in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def with_times(merged: Merged, times: Times, event_time: str, *, fallback: Timestamp) -> pa.Table:
    """Merged rows with the event times that rows of the input lack: those of their messages.

    They are filled behind the merge, so these rows keep their place before those with an event time of their own. What
    was taken from the state stays as it was.
    """
    rows = merged.rows
    index = rows.column_names.index(event_time)
    column = _one(rows[event_time])
    if not column.null_count:
        return rows
    found = _of_messages(merged.source_row, times, fallback).cast(column.type, safe=False)
    field = rows.schema.field(index)
    return rows.set_column(index, field, pc.coalesce(column, found))


def with_system_columns(
    rows: pa.Table,
    op: pa.Array,
    stored: pa.Schema,
    *,
    next_offset: int,
    system_time: Timestamp,
    vocabulary: DatasetVocabulary,
) -> pa.Table:
    """The rows with all columns of a slice."""
    count = rows.num_rows
    milliseconds = pa.scalar(system_time.ns // _NS_PER_MS, pa.int64())
    own = {
        vocabulary.offset_column: pa.array(np.arange(next_offset, next_offset + count), OFFSET_TYPE),
        vocabulary.operation_type_column: op.cast(OPERATION_TYPE),
        vocabulary.system_time_column: pa.repeat(milliseconds, count).cast(SYSTEM_TIME_TYPE),
    }
    columns = [own[column.name] if column.name in own else _column(rows, column) for column in stored]
    return pa.Table.from_arrays(columns, schema=stored)


def largest_event_time(times: pa.ChunkedArray, *, until: Timestamp | None) -> Timestamp | None:
    """The largest that is the time of an event (see LAST_EVENT_TIME_MS) and not after a moment."""
    numbers = _milliseconds(times)
    end = LAST_EVENT_TIME_MS
    if until is not None:
        end = min(end, until.ns // _NS_PER_MS + 1)
    largest = pc.max(numbers).as_py()
    if largest is not None and largest >= end:
        largest = pc.max(numbers.filter(pc.less(numbers, end))).as_py()
    return None if largest is None else Timestamp(largest * _NS_PER_MS)


def late_rows(times: pa.ChunkedArray, op: pa.Array, watermark: Timestamp | None) -> int:
    """How many rows bring events from before the watermark; what they take back does not count."""
    if watermark is None:
        return 0
    first = -(-watermark.ns // _NS_PER_MS)
    late = np.asarray(pc.fill_null(pc.less(_milliseconds(times), first), False), np.bool_)
    brings = np.isin(op.to_numpy(), (OperationType.APPEND, OperationType.CORRECT_TO))
    return int((late & brings).sum())


def _of_messages(source_row: npt.NDArray[np.int64], times: Times, fallback: Timestamp) -> pa.Array:
    """The times of the messages of rows, null for those of the state."""
    if isinstance(times, pa.Scalar):
        times = pa.repeat(times, 1)
        places = np.where(source_row >= 0, 0, -1)
    else:
        places = source_row
    indices = pa.array(places, pa.int64(), mask=places < 0)
    return _sensible(_one(times), fallback).take(indices)


def _sensible(times: pa.Array, fallback: Timestamp) -> pa.Array:
    """Times of messages; producers may set any, so those that no event can have give way to the system time."""
    numbers = times.cast(pa.int64())
    fine = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, LAST_EVENT_TIME_MS * 1000))
    return pc.if_else(fine, numbers, fallback.ns // 1000).cast(times.type)


def _column(rows: pa.Table, wanted: pa.Field) -> pa.ChunkedArray | pa.Array:
    if wanted.name not in rows.column_names:
        return pa.nulls(rows.num_rows, wanted.type)
    column = rows[wanted.name]
    if not wanted.nullable and column.null_count:
        raise IncompatibleSchemaError(f"column {wanted.name!r} has nulls, the dataset's schema allows none")
    return column if column.type == wanted.type else column.cast(wanted.type)


def _milliseconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(EVENT_TIME).cast(pa.int64())


def _in_milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type.tz is None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    return pc.floor_temporal(column, unit="millisecond").cast(EVENT_TIME, safe=False)


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
