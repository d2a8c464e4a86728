"""What rows do to the latest rows of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.data.operation import OperationType
from odf_common.ingest.merge import merge_keys
from odf_common.ingest.merge.latest import last_places
from odf_common.metadata.fragments import DatasetVocabulary

_LIVE = pa.array([OperationType.APPEND, OperationType.CORRECT_TO], pa.int32())


@dataclass(frozen=True, slots=True)
class Changes:
    """Keys, no two alike, and the last row of each."""

    keys: pa.Array
    rows: pa.Table
    """With data columns only."""
    live: pa.Array
    """Whether the row stands for its key from now on, or took it away."""


def changes_of(rows: pa.Table, primary_key: Sequence[str], vocabulary: DatasetVocabulary) -> Changes:
    """Of rows in the order of their offsets. Those without key are left out."""
    keys = keys_of(rows, primary_key)
    rows, keys = _without_undone(rows, keys, vocabulary)
    places = pa.array(last_places(keys))
    live = is_live(rows[vocabulary.operation_type_column]).take(places)
    return Changes(keys.take(places), data_columns(rows, vocabulary).take(places).combine_chunks(), live)


def _without_undone(rows: pa.Table, keys: pa.Array, vocabulary: DatasetVocabulary) -> tuple[pa.Table, pa.Array]:
    """Without the first row of each correction where the second stands behind it: half of what a large update has."""
    operations = rows[vocabulary.operation_type_column].to_numpy()
    undone = (operations[:-1] == OperationType.CORRECT_FROM) & (operations[1:] == OperationType.CORRECT_TO)
    if not undone.any():
        return rows, keys
    same = pc.fill_null(pc.equal(keys.slice(0, len(keys) - 1), keys.slice(1)), False).to_numpy(zero_copy_only=False)
    kept = pa.array(np.flatnonzero(~np.append(undone & same, False)))
    return rows.take(kept), keys.take(kept)


def is_live(operations: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Whether rows with these operations stand for their keys while no others follow."""
    found = pc.is_in(operations.cast(pa.int32()), value_set=_LIVE)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def keys_of(rows: pa.Table, primary_key: Sequence[str]) -> pa.Array:
    """The keys of rows, null where they have none: also where they were written before there was such a column."""
    if not all(name in rows.column_names for name in primary_key):
        return pa.nulls(rows.num_rows, pa.binary())
    return merge_keys(rows.combine_chunks(), primary_key)


def data_columns(rows: pa.Table, vocabulary: DatasetVocabulary) -> pa.Table:
    """The rows without what says where and when they were written."""
    system = (vocabulary.offset_column, vocabulary.operation_type_column, vocabulary.system_time_column)
    return rows.drop_columns([name for name in system if name in rows.column_names])


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The same values in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
