"""Values of the logical hash: what arrow-digest 0 feeds for the rows of one leaf column, without a loop over rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from odf_common.data.digest_types import is_bytes, is_list, is_text, logical_type
from odf_common.data.errors import UnsupportedTypeError

Mask: TypeAlias = npt.NDArray[np.bool_] | None
"""One flag for each row, true where it has a value; None where all rows have one."""

_Offsets: TypeAlias = npt.NDArray[np.int64]

_NULL = b"\0"
_COUNT_SIZE = 8  # bytes
_ADDED_TO_BIT = np.uint8(1)  # false is fed as 1, true as 2


def own_mask(array: pa.Array) -> Mask:
    """The array's own bitmap; one without any null counts as absent."""
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)  # a null may stand in the dictionary as well
    if array.null_count == 0:
        return None
    mask: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def bitmap(mask: Mask) -> pa.Buffer | None:
    """The mask as an Arrow validity bitmap without offset."""
    return None if mask is None else pa.py_buffer(np.packbits(mask, bitorder="little"))


def value_bytes(array: pa.Array, mask: Mask) -> Any:
    """All rows of a leaf, one after another, as a buffer for a hasher.

    `mask` says which rows have a value, whatever the array's own bitmap says: where the two differ, the bytes that
    happen to lie under a null are fed.
    """
    array = _plain(array)
    if len(array) == 0:
        return b""
    if mask is None and _has_fixed_width(array.type):
        return _fixed_width_buffer(array)
    rows = _rows(array, mask)
    return rows.buffers()[2].slice(0, _offsets(rows)[-1])


def _plain(array: pa.Array) -> pa.Array:
    """The same values, in the one layout of each type that the rest of this module knows."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if types.is_dictionary(array.type):
        return _plain(array.cast(logical_type(array.type)))
    if is_text(array.type) or is_bytes(array.type):
        return array.cast(pa.large_binary())
    return array


def _rows(array: pa.Array, mask: Mask) -> pa.LargeBinaryArray:
    """One value for each row of a plain array, never null: the bytes that stand for the row."""
    if types.is_boolean(array.type):
        return _or_null(_cut(pa.py_buffer(_bits(array) + _ADDED_TO_BIT), 1, len(array), mask))
    if _has_fixed_width(array.type):
        return _or_null(_cut(_fixed_width_buffer(array), _width(array.type), len(array), mask))
    if types.is_fixed_size_binary(array.type):
        contents = _cut(_fixed_width_buffer(array), _width(array.type), len(array), None)
        return _counted(contents, np.full(len(array), _width(array.type)), mask)
    if types.is_large_binary(array.type):
        offsets = _offsets(array)
        # Without its bitmap, so that nothing is lost under nulls that count as values.
        return _counted(_large_binary(offsets, array.buffers()[2]), np.diff(offsets), mask)
    if is_list(array.type):
        return _list_rows(array, mask)
    raise UnsupportedTypeError(array.type, "the logical hash of values")


def _list_rows(array: pa.Array, mask: Mask) -> pa.LargeBinaryArray:
    offsets = _offsets(array)
    items = _plain(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
    if len(items) == 0:
        contents = _large_binary(np.zeros(len(array) + 1, np.int64), None)
    else:
        item_rows = _rows(items, own_mask(items))
        contents = _large_binary(_offsets(item_rows)[offsets - offsets[0]], item_rows.buffers()[2])
    return _counted(contents, np.diff(offsets), mask)


def _counted(contents: pa.LargeBinaryArray, counts: _Offsets, mask: Mask) -> pa.LargeBinaryArray:
    """Each content behind its count as u64, or the byte of a null instead of both.

    Of several ways, taking counts and contents in turn from one pool copies fastest.
    """
    length = len(contents)
    prefixes = _cut(pa.py_buffer(counts.astype("<u8")), _COUNT_SIZE, length, None)
    pool = pa.concat_arrays([prefixes, contents, pa.array([_NULL, b""], pa.large_binary())])
    rows = np.arange(length)
    turns = np.empty(2 * length, np.int64)
    turns[0::2] = rows if mask is None else np.where(mask, rows, 2 * length)
    turns[1::2] = rows + length if mask is None else np.where(mask, rows + length, 2 * length + 1)
    taken = pool.take(pa.array(turns))
    return _large_binary(_offsets(taken)[::2], taken.buffers()[2])


def _cut(data: pa.Buffer, width: int, length: int, mask: Mask) -> pa.LargeBinaryArray:
    """A buffer of equal parts as byte strings; null where the mask is false."""
    return pa.Array.from_buffers(pa.binary(width), length, [bitmap(mask), data]).cast(pa.large_binary())


def _or_null(rows: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    return rows.fill_null(pa.scalar(_NULL, pa.large_binary())) if rows.null_count else rows


def _large_binary(offsets: _Offsets, data: pa.Buffer | None) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(b"") if data is None else data]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _has_fixed_width(data_type: pa.DataType) -> bool:
    """Types whose values are fed as they lie in memory."""
    return (types.is_primitive(data_type) and not types.is_boolean(data_type)) or types.is_decimal(data_type)


def _width(data_type: pa.DataType) -> int:
    return int(data_type.bit_width) // 8


def _fixed_width_buffer(array: pa.Array) -> pa.Buffer:
    """The values of the array's rows alone, without what lies before its offset."""
    width = _width(array.type)
    return array.buffers()[1].slice(array.offset * width, len(array) * width)


def _bits(array: pa.BooleanArray) -> npt.NDArray[np.uint8]:
    stored = np.frombuffer(array.buffers()[1], np.uint8)
    return np.unpackbits(stored, bitorder="little", count=array.offset + len(array))[array.offset :]


def _offsets(array: pa.Array) -> _Offsets:
    """Where each row of a list or byte string begins, and where the last one ends."""
    if types.is_fixed_size_list(array.type):
        return np.arange(array.offset, array.offset + len(array) + 1) * int(array.type.list_size)
    width: type[np.int32 | np.int64] = np.int32 if types.is_list(array.type) else np.int64
    stored = np.frombuffer(array.buffers()[1], width)
    return stored[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)
