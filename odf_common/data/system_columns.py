"""System columns: what every record carries besides its data (ODF, Common Data Schema)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import types

from odf_common.metadata.fragments import DatasetVocabulary

OFFSET_TYPE = pa.int64()
OPERATION_TYPE = pa.int32()
SYSTEM_TIME_TYPE = pa.timestamp("ms", "UTC")

_MAX_OFFSET = 2**63 - 1


def as_read(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    """The same columns, with offsets and operations in the types that this project works with.

    The specification says uint64 and uint8; what is written everywhere, for the sake of Spark and Flink, is int64 and
    int32.
    """
    working = {vocabulary.offset_column: OFFSET_TYPE, vocabulary.operation_type_column: OPERATION_TYPE}
    return pa.schema(
        column.with_type(working[column.name]) if column.name in working and types.is_integer(column.type) else column
        for column in schema
    )


def as_written(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    """The same columns, with system columns in the types of the facts and required; ValueError when one is missing."""
    system = {
        vocabulary.offset_column: OFFSET_TYPE,
        vocabulary.operation_type_column: OPERATION_TYPE,
        vocabulary.system_time_column: SYSTEM_TIME_TYPE,
    }
    missing = [name for name in system if name not in schema.names]
    if missing:
        raise ValueError(f"a slice needs the system columns {', '.join(missing)}; it has {', '.join(schema.names)}")
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
