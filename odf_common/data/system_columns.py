"""System columns: what every record carries besides its data (ODF, Common Data Schema)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import types

from odf_common.errors import MalformedBytesError
from odf_common.metadata.fragments import DatasetVocabulary

OFFSET_TYPE = pa.int64()
OPERATION_TYPE = pa.int32()
SYSTEM_TIME_TYPE = pa.timestamp("ms", "UTC")

_MAX_OFFSET = 2**63 - 1


def as_read(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    """The same columns, with offsets and operations in the types that this project works with.

    The specification says uint64 and uint8; what is written everywhere, for the sake of Spark and Flink, is int64 and
    int32. MalformedBytesError unless there is one column of offsets, which are integers.
    """
    _check_offset_column(schema, vocabulary.offset_column)
    working = {vocabulary.offset_column: OFFSET_TYPE, vocabulary.operation_type_column: OPERATION_TYPE}
    return pa.schema(
        column.with_type(working[column.name]) if column.name in working and types.is_integer(column.type) else column
        for column in schema
    )


def _check_offset_column(schema: pa.Schema, name: str) -> None:
    found = [str(column.type) for column in schema if column.name == name]
    if not found:
        raise MalformedBytesError(f"a slice has no column {name}; it has {', '.join(schema.names)}")
    if len(found) > 1:
        raise MalformedBytesError(f"a slice has {len(found)} columns {name!r}, of the types {', '.join(found)}")
    if not types.is_integer(schema.field(name).type):
        raise MalformedBytesError(f"the column {name!r} of a slice has the type {found[0]}, which holds no offsets")


def as_written(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    """The same columns, with system columns in the types of the facts and required.

    ValueError unless they come first and in their order, the event time among them if there is one.
    """
    system = {
        vocabulary.offset_column: OFFSET_TYPE,
        vocabulary.operation_type_column: OPERATION_TYPE,
        vocabulary.system_time_column: SYSTEM_TIME_TYPE,
    }
    first = [*system, *(name for name in [vocabulary.event_time_column] if name in schema.names)]
    if schema.names[: len(first)] != first:
        raise ValueError(f"a slice begins with the columns {', '.join(first)}; this has {', '.join(schema.names)}")
    return pa.schema(
        pa.field(column.name, system[column.name], nullable=False) if column.name in system else column
        for column in schema
    )


def first_gap(offsets: pa.Array, start: int) -> tuple[int, int | None] | None:
    """The first offset that is not where it should be when they count from `start`: (expected, found), or None."""
    if len(offsets) and start + len(offsets) > _MAX_OFFSET:
        return start, offsets[0].as_py()
    found = offsets.to_numpy(zero_copy_only=False)
    expected = np.arange(start, start + len(found))
    odd = np.flatnonzero(found != expected)
    if not len(odd):
        return None
    return int(expected[odd[0]]), offsets[int(odd[0])].as_py()
