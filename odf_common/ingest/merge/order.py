"""The orders of rows: by event time, or by key and operation. Ascending, nulls first, equal ones as they were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.ingest.merge.arrays import one_array
from odf_common.ingest.merge.merged import Places

_FLIPPED = {16: (np.int16, 0x7FFF), 32: (np.int32, 0x7FFF_FFFF), 64: (np.int64, 0x7FFF_FFFF_FFFF_FFFF)}


def key_order(table: pa.Table, columns: Sequence[str]) -> Places:
    """The places of the rows in the order of these columns; texts in the order of their bytes."""
    values = {str(number): _sortable(one_array(table[name])) for number, name in enumerate(columns)}
    order = pc.sort_indices(pa.table(values), sort_keys=[(name, "ascending", "at_start") for name in values])
    return np.asarray(order.to_numpy(), np.int64)


def time_order(times: pa.ChunkedArray) -> Places:
    """The places of the rows in the order of their event times."""
    column = one_array(times)
    places = np.arange(len(column))
    if column.null_count == len(column):
        return places
    width = np.int64 if column.type.bit_width == 64 else np.int32
    numbers = column.cast(pa.from_numpy_dtype(width))
    if column.null_count:
        numbers = pc.fill_null(numbers, np.iinfo(width).min)
    found = numbers.to_numpy()
    if (found[:-1] <= found[1:]).all():
        return places
    return np.argsort(found, kind="stable")


def _sortable(array: pa.Array) -> pa.Array:
    """Floating point numbers as integers in the same order, zeros alike and NaN behind all: Arrow has it elsewhere."""
    if not types.is_floating(array.type):
        return array
    width, flip = _FLIPPED[array.type.bit_width]
    bits = pc.add(array, pa.scalar(0.0, array.type)).view(pa.from_numpy_dtype(width))
    numbers = pc.fill_null(bits, 0).to_numpy()
    ordered = np.where(numbers < 0, numbers ^ flip, numbers).astype(width)
    return pa.array(ordered, mask=array.is_null().to_numpy(zero_copy_only=False))
