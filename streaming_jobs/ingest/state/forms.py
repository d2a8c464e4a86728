"""Columns in forms that DuckDB compares as the merge does: equal forms for equal values, in the order of keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.ingest.row_codec import RowCodec

_DECIMAL_SIZE = 33  # bytes: 256 bits and the sign
_MAX_DECIMAL = 38  # digits that DuckDB knows


def key_form(array: pa.Array) -> pa.Array:
    """For a column of the key: equal where `merge_keys` has equal parts, and in the order of the strategies."""
    data_type = array.type
    if types.is_floating(data_type):
        numbers = pc.add(array.cast(pa.float64()), 0.0).view(pa.int64())
        found = pc.fill_null(numbers, 0).to_numpy()
        flipped = np.where(found < 0, found ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), found)
        return pa.array(flipped, mask=_nulls(array))
    if types.is_date(data_type):
        return array.cast(pa.date32()).view(pa.int32())
    if types.is_decimal(data_type):
        return _decimal(array)
    return value_form(array)


def value_form(array: pa.Array) -> pa.Array:
    """For any column: equal where the bits are, null where it is."""
    data_type = array.type
    if types.is_null(data_type):
        return pa.nulls(len(array), pa.int8())
    if types.is_boolean(data_type) or types.is_integer(data_type):
        return array
    if types.is_binary(data_type) or types.is_large_binary(data_type):
        return array
    if types.is_string(data_type):
        return array.cast(pa.binary())  # DuckDB checks whether texts are UTF-8
    if types.is_large_string(data_type):
        return array.cast(pa.large_binary())
    if types.is_string_view(data_type) or types.is_binary_view(data_type) or types.is_fixed_size_binary(data_type):
        return (array.cast(pa.string()) if types.is_string_view(data_type) else array).cast(pa.binary())
    if types.is_floating(data_type) or types.is_temporal(data_type):
        width = data_type.bit_width
        if width <= 64:
            return array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width])
    return _encoded(array)


def _decimal(array: pa.Array) -> pa.Array:
    if array.type.precision <= _MAX_DECIMAL:
        return array.cast(pa.decimal128(array.type.precision, array.type.scale))
    shift = 1 << (8 * _DECIMAL_SIZE - 1)
    numbers = (None if value is None else int(value.scaleb(array.type.scale)) for value in array.to_pylist())
    return pa.array(
        [None if number is None else (number + shift).to_bytes(_DECIMAL_SIZE, "big") for number in numbers],
        pa.binary(),
    )


def _encoded(array: pa.Array) -> pa.Array:
    encoded = RowCodec(pa.schema([pa.field("x", array.type)])).encode(pa.table({"x": array}))
    return pc.if_else(array.is_valid(), encoded, pa.scalar(None, pa.binary())) if array.null_count else encoded


def _nulls(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
