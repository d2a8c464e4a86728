"""The state that rows leave: of each key the latest row, unless that took it away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.data.operation import OperationType
from odf_common.ingest.merge.keys import merge_keys
from odf_common.ingest.merge.merged import Mask, Places
from odf_common.metadata.fragments import DatasetVocabulary

_LIVE = pa.array([OperationType.APPEND, OperationType.CORRECT_TO], pa.int64())


def latest_rows(prev: pa.Table, primary_key: Sequence[str], vocabulary: DatasetVocabulary) -> pa.Table:
    """The live latest rows of all earlier ones, in the order of their offsets, with data columns only.

    Rows with a null in the key belong to no key.
    """
    prev = prev.combine_chunks()
    offsets = prev[vocabulary.offset_column].to_numpy()
    if not (offsets[:-1] <= offsets[1:]).all():
        prev = prev.take(pa.array(np.argsort(offsets, kind="stable")))
    last = last_places(merge_keys(prev, primary_key))
    operations = prev[vocabulary.operation_type_column].cast(pa.int64()).take(pa.array(last))
    live = pc.is_in(operations, value_set=_LIVE).to_numpy()
    system = (vocabulary.offset_column, vocabulary.operation_type_column, vocabulary.system_time_column)
    return prev.drop_columns([name for name in system if name in prev.column_names]).take(pa.array(last[live]))


def last_places(keys: pa.Array) -> Places:
    """The last row of each key, in the order of the rows; those without key left out."""
    codes = keys.dictionary_encode()
    last = np.full(len(codes.dictionary), -1, np.int64)
    valid = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
    last[pc.fill_null(codes.indices, 0).to_numpy()[valid]] = valid  # of several, numpy keeps the last
    return np.sort(last)


class TableRows:
    """A LatestRows and a KeyIndex of a table in memory, which has at most one row for each key."""

    def __init__(self, rows: pa.Table, primary_key: Sequence[str]) -> None:
        self._rows = rows.combine_chunks()
        self._keys = merge_keys(self._rows, primary_key)

    def contains(self, keys: Sequence[bytes]) -> Mask:
        """See `KeyIndex`."""
        found = pc.is_in(pa.array(keys, pa.binary()), value_set=self._keys.drop_null())
        return np.array(found.to_numpy(zero_copy_only=False), np.bool_)

    def latest(self, keys: pa.Array, schema: pa.Schema) -> tuple[Mask, pa.Table]:
        """See `LatestRows`."""
        places = places_in(keys, self._keys)
        found = places >= 0
        return found, aligned(self._rows.take(pa.array(places[found])), schema)


def places_in(keys: pa.Array, known: pa.Array) -> Places:
    """Where each key stands among the known ones, -1 where it does not; nulls stand nowhere."""
    if not len(known):
        return np.full(len(keys), -1, np.int64)
    found = pc.index_in(keys, value_set=known, skip_nulls=True)
    return np.asarray(pc.fill_null(found, -1).to_numpy(), np.int64)


def aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """With the columns of a schema, null where the rows have none of that name."""
    columns = [
        _cast(rows[column.name], column.type) if column.name in rows.column_names else _nulls(rows, column.type)
        for column in schema
    ]
    nullable = pa.schema([column.with_nullable(True) for column in schema])
    return pa.Table.from_arrays(columns, schema=nullable)


def _nulls(rows: pa.Table, data_type: pa.DataType) -> pa.Array:
    return pa.nulls(rows.num_rows, data_type)


def _cast(column: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == data_type else column.cast(data_type)
