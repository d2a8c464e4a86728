"""Whether rows differ: null equals null, and other values are equal when their bits are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.ingest.merge.arrays import as_mask, one_array
from odf_common.ingest.merge.merged import Mask
from odf_common.ingest.row_codec import RowCodec

_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def changed(before: pa.Table, after: pa.Table, columns: Iterable[str], *, event_time: str) -> Mask:
    """For each row, whether one of the columns is another one after; an event time counts where `after` has one."""
    found = np.zeros(after.num_rows, np.bool_)
    for name in columns:
        one, other = one_array(before[name]), one_array(after[name])
        differs = _distinct(one, other)
        if name == event_time:
            differs &= as_mask(other.is_valid())
        found |= differs
    return found


def _distinct(one: pa.Array, other: pa.Array) -> Mask:
    data_type = one.type
    if types.is_null(data_type):
        return np.zeros(len(one), np.bool_)
    if types.is_floating(data_type):
        one, other = (array.view(_BITS[data_type.bit_width]) for array in (one, other))
    elif types.is_nested(data_type):
        one, other = _encoded(one), _encoded(other)
    differs = as_mask(pc.fill_null(pc.not_equal(one, other), False))
    if one.null_count or other.null_count:
        differs |= as_mask(pc.xor(one.is_null(), other.is_null()))
    return differs


def _encoded(array: pa.Array) -> pa.Array:
    table = pa.table({"x": array})
    return RowCodec(table.schema).encode(table)
