"""From merged rows to the rows of a slice: event times, order, system columns, the dataset's schema."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.data.arrow_types import from_arrow
from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import LogicalHasher
from odf_common.data.operation import OperationType
from odf_common.data.slice_writer import stored_schema
from odf_common.data.system_columns import OFFSET_TYPE, OPERATION_TYPE, SYSTEM_TIME_TYPE
from odf_common.ingest.errors import BadInputSchemaError, IncompatibleSchemaError
from odf_common.ingest.read.texts import LAST_EVENT_TIME_MS
from odf_common.ingest.source import SourcePlan, system_columns
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import MergeStrategyLedger
from odf_common.timestamp import Timestamp

EVENT_TIME = pa.timestamp("ms", "UTC")


def normalized(rows: pa.Table, vocabulary: DatasetVocabulary) -> pa.Table:
    """Timestamps in milliseconds and UTC."""
    for index, column in enumerate(rows.schema):
        if types.is_timestamp(column.type) and column.type != EVENT_TIME:
            rows = rows.set_column(index, column.with_type(EVENT_TIME), _in_milliseconds(rows[column.name]))
    return rows


def event_times(plan: SourcePlan, rows: pa.Table) -> pa.Table:
    """With an event time column, empty if the rows bring none."""
    name = plan.vocabulary.event_time_column
    if name in rows.column_names:
        return rows
    known = plan.data_schema
    data_type = known.field(name).type if known is not None and name in known.names else EVENT_TIME
    return rows.add_column(0, pa.field(name, data_type), pa.nulls(rows.num_rows, data_type))


def with_key_columns(plan: SourcePlan, rows: pa.Table) -> pa.Table:
    """With empty columns for parts of a Ledger's key that no record has had so far, where columns are inferred."""
    if not isinstance(plan.source.merge, MergeStrategyLedger) or plan.has_preprocess or plan.declares_rows:
        return rows
    for name in plan.source.merge.primary_key:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    return rows


def sorted_by_time(
    rows: pa.Table, times: pa.ChunkedArray, vocabulary: DatasetVocabulary, *, fallback: Timestamp
) -> pa.Table:
    """In the order of event time, once missing ones are filled with the times of their messages.

    Filled first, sorted then: the slice is in the order of the event times that it shows, and rows without their own
    stand where their time belongs. So whoever reads a slice from its beginning sees event time, and any watermark made
    of it, only advance. Sorting first would put them in front ("nulls first") with the latest times of all. What is
    equal keeps the order of the messages.
    """
    name = vocabulary.event_time_column
    index = rows.column_names.index(name)
    column = _one(rows[name])
    if column.null_count:
        column = pc.coalesce(column, _sensible(_one(times), fallback).cast(column.type, safe=False))
        rows = rows.set_column(index, rows.schema.field(name), column)
    numbers = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32()).to_numpy()
    if (numbers[:-1] <= numbers[1:]).all():
        return rows
    return rows.take(pa.array(np.argsort(numbers, kind="stable")))


def data_schema_with(plan: SourcePlan, columns: pa.Schema) -> pa.Schema:
    """The dataset's schema, with what columns are new to it; the very same if none is.

    IncompatibleSchemaError when a column changed its type, or when a required one is missing.
    """
    if plan.data_schema is None:
        return _first_schema(plan, columns)
    known = plan.data_schema
    fields = []
    for column in known:
        if column.name in system_columns(plan.vocabulary):
            fields.append(column)
            continue
        index = columns.get_field_index(column.name)
        if index < 0 and not column.nullable:
            raise IncompatibleSchemaError(f"column {column.name!r} is missing, the dataset's schema requires it")
        fields.append(column if index < 0 else _same_or_wider(column, columns.field(index)))
    new = [column.with_nullable(True) for column in columns if column.name not in known.names]
    if not new and all(field == column for field, column in zip(fields, known, strict=True)):
        return known
    stored = _stored(pa.schema([*fields, *new]), plan.vocabulary)
    return pa.schema([*fields, *(stored.field(column.name) for column in new)])


def final_rows(
    plan: SourcePlan, schema: pa.Schema, rows: pa.Table, next_offset: int, system_time: Timestamp
) -> tuple[pa.Table, Timestamp | None]:
    """The rows with all columns of the schema, and their largest event time."""
    vocabulary = plan.vocabulary
    count = rows.num_rows
    stored = plan.stored_schema if schema is plan.data_schema else None
    target = stored or stored_schema(schema, vocabulary)
    own = {
        vocabulary.offset_column: pa.array(np.arange(next_offset, next_offset + count), OFFSET_TYPE),
        vocabulary.operation_type_column: pa.array(np.full(count, OperationType.APPEND, np.int32), OPERATION_TYPE),
        vocabulary.system_time_column: pa.repeat(pa.scalar(system_time.ns // 1_000_000, pa.int64()), count).cast(
            SYSTEM_TIME_TYPE
        ),
    }
    columns = []
    for column in target:
        if column.name in own:
            columns.append(own[column.name])
        elif column.name in rows.column_names:
            columns.append(_cast(rows[column.name], column))
        else:
            columns.append(pa.nulls(count, column.type))
    table = pa.Table.from_arrays(columns, schema=target)
    return table, _largest(rows[vocabulary.event_time_column])


def _sensible(times: pa.Array, fallback: Timestamp) -> pa.Array:
    """Times of messages; producers may set any, so those that no event can have give way to the system time."""
    numbers = times.cast(pa.int64())
    fine = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, LAST_EVENT_TIME_MS * 1000))
    return pc.if_else(fine, numbers, fallback.ns // 1000).cast(times.type)


def _first_schema(plan: SourcePlan, columns: pa.Schema) -> pa.Schema:
    vocabulary = plan.vocabulary
    event_time = columns.field(vocabulary.event_time_column)
    others = [column for column in columns if column.name != vocabulary.event_time_column]
    system = zip(system_columns(vocabulary), (OFFSET_TYPE, OPERATION_TYPE, SYSTEM_TIME_TYPE), strict=True)
    if plan.has_preprocess:  # what a query knows to be never null may be null after it was changed
        others = [column.with_nullable(True) for column in others]
    wanted = [*(pa.field(name, data_type) for name, data_type in system), event_time, *others]
    return _stored(pa.schema(wanted), vocabulary)


def _stored(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    stored = stored_schema(schema, vocabulary)
    try:
        LogicalHasher(stored)
    except UnsupportedTypeError as error:
        raise BadInputSchemaError(f"{error}: give the column another type, or leave it out") from error
    return stored


def _same_or_wider(known: pa.Field, found: pa.Field) -> pa.Field:
    """The known column, unless the rows bring new members of its structs."""
    if _logical(known) == _logical(found):
        return known
    if types.is_nested(known.type) and _is_wider(known.type, found.type):
        return found.with_nullable(known.nullable)
    raise IncompatibleSchemaError(
        f"column {known.name!r} is {found.type} here and {known.type} in the dataset's schema"
    )


def _is_wider(known: pa.DataType, found: pa.DataType) -> bool:
    if types.is_struct(known) and types.is_struct(found):
        members = {member.name: member.type for member in found}
        return all(member.name in members and _is_wider(member.type, members[member.name]) for member in known)
    if types.is_list(known) and types.is_list(found):
        return _is_wider(known.value_type, found.value_type)
    return _logical(pa.field("x", known)) == _logical(pa.field("x", found))


def _logical(column: pa.Field) -> object:
    return from_arrow(pa.schema([column.with_nullable(True).with_name("x")]))


def _cast(column: pa.ChunkedArray, wanted: pa.Field) -> pa.ChunkedArray | pa.Array:
    if not wanted.nullable and column.null_count:
        raise IncompatibleSchemaError(f"column {wanted.name!r} has nulls, the dataset's schema allows none")
    return column if column.type == wanted.type else column.cast(wanted.type)


def _largest(column: pa.ChunkedArray) -> Timestamp | None:
    """The largest event time that is a time of an event: see LAST_EVENT_TIME_MS."""
    numbers = column.cast(EVENT_TIME).cast(pa.int64())
    numbers = numbers.filter(pc.less(numbers, LAST_EVENT_TIME_MS)) if len(numbers) else numbers
    largest = pc.max(numbers).as_py()
    return None if largest is None else Timestamp(largest * 1_000_000)


def _in_milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type.tz is None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    return pc.floor_temporal(column, unit="millisecond").cast(EVENT_TIME, safe=False)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
