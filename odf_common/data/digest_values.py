"""Values of the logical hash: what arrow-digest 0 feeds for the rows of one leaf column, without a loop over rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from odf_common.data.digest_types import is_bytes, is_list, is_text, is_view, logical_type
from odf_common.data.errors import UnsupportedTypeError
from odf_common.errors import MalformedBytesError

Mask: TypeAlias = npt.NDArray[np.bool_] | None
"""One flag for each row, true where it has a value; None where all rows have one."""

_Offsets: TypeAlias = npt.NDArray[np.int64]

_CHUNK_ROWS = 32_768  # the fastest of the powers of two: what is copied stays in the cache

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


def value_bytes(array: pa.Array, mask: Mask) -> Iterator[Any]:
    """All rows of a leaf, one after another, as buffers for a hasher that are of bounded size.

    `mask` says which rows have a value, whatever the array's own bitmap says: where the two differ, the bytes that
    happen to lie under a null are fed.
    """
    for start in range(0, len(array), _CHUNK_ROWS):
        end = start + _CHUNK_ROWS
        yield _chunk_bytes(array[start:end], None if mask is None else mask[start:end])


def _chunk_bytes(array: pa.Array, mask: Mask) -> Any:
    array = _plain(_uncovered(array, mask) if is_view(array.type) else array)
    if mask is None and _has_fixed_width(array.type):
        return _fixed_width_buffer(array)
    rows = _rows(array, mask)
    return rows.data.slice(0, rows.offsets[-1])


class _Rows(NamedTuple):
    """The bytes that stand for each row, one row after another, and where each begins (and the last one ends)."""

    data: pa.Buffer
    offsets: _Offsets


def _uncovered(array: pa.Array, mask: Mask) -> pa.Array:
    """Views without their bitmap where a null counts as a value: a cast of views forgets what lies under nulls."""
    own = own_mask(array)
    if own is None or (mask is not None and not (mask & ~own).any()):
        return array
    bare = pa.Array.from_buffers(pa.binary_view(), len(array), [None, *array.buffers()[1:]], offset=array.offset)
    try:
        bare.validate(full=True)
    except pa.ArrowException as error:
        raise MalformedBytesError(f"a view under a null, which counts as a value, points nowhere: {error}") from error
    return bare


def _plain(array: pa.Array) -> pa.Array:
    """The same values, in the one layout of each type that the rest of this module knows."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if types.is_dictionary(array.type):
        return _plain(array.cast(logical_type(array.type)))
    if is_text(array.type) or is_bytes(array.type):
        return array.cast(pa.large_binary())
    return array


def _rows(array: pa.Array, mask: Mask) -> _Rows:
    """The rows of a plain array that is not empty."""
    if types.is_boolean(array.type):
        return _bare(pa.py_buffer(_bits(array) + _ADDED_TO_BIT), 1, len(array), mask)
    if _has_fixed_width(array.type):
        return _bare(_fixed_width_buffer(array), _width(array.type), len(array), mask)
    if types.is_fixed_size_binary(array.type):
        width = _width(array.type)
        contents = _cut(_fixed_width_buffer(array), width, len(array), None)
        return _counted(contents, np.full(len(array), width), mask)
    if types.is_large_binary(array.type):
        offsets = _offsets(array)
        # Without its bitmap, so that nothing is lost under nulls that count as values.
        return _counted(_large_binary(array.buffers()[2], offsets), np.diff(offsets), mask)
    if is_list(array.type):
        return _list_rows(array, mask)
    raise UnsupportedTypeError(array.type, "the logical hash of values")


def _list_rows(array: pa.Array, mask: Mask) -> _Rows:
    offsets = _offsets(array)
    items = _plain(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
    item_rows = _rows(items, own_mask(items)) if len(items) else _Rows(None, np.zeros(1, np.int64))
    contents = _large_binary(item_rows.data, item_rows.offsets[offsets - offsets[0]])
    return _counted(contents, np.diff(offsets), mask)


def _bare(data: pa.Buffer, width: int, length: int, mask: Mask) -> _Rows:
    """Values as they are, or the byte of a null."""
    rows = _cut(data, width, length, mask)
    if mask is not None:
        rows = rows.fill_null(pa.scalar(_NULL, pa.large_binary()))
    return _Rows(rows.buffers()[2], _offsets(rows))


def _counted(contents: pa.LargeBinaryArray, counts: _Offsets, mask: Mask) -> _Rows:
    """Each content behind its count as u64, or the byte of a null instead of both.

    Of several ways, taking counts and contents in turn from one pool copies fastest.
    """
    length = len(contents)
    prefixes = _cut(pa.py_buffer(counts.view("<u8")), _COUNT_SIZE, length, None)
    pool = pa.concat_arrays([prefixes, contents, pa.array([_NULL, b""], pa.large_binary())])
    turns = np.arange(2 * length).reshape(2, length).T.ravel()
    if mask is not None:
        nulls = np.flatnonzero(~mask) * 2
        turns[nulls] = 2 * length
        turns[nulls + 1] = 2 * length + 1
    taken = pool.take(pa.array(turns))
    return _Rows(taken.buffers()[2], _offsets(taken)[::2])


def _cut(data: pa.Buffer, width: int, length: int, mask: Mask) -> pa.LargeBinaryArray:
    """A buffer of equal parts as byte strings; null where the mask is false."""
    return pa.Array.from_buffers(pa.binary(width), length, [bitmap(mask), data]).cast(pa.large_binary())


def _large_binary(data: pa.Buffer | None, offsets: _Offsets) -> pa.LargeBinaryArray:
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
