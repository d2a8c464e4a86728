"""arrow-digest 0 as slow and obvious as it can be told: one value at a time, straight from the facts."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyarrow import types

Nulls = list[bool] | None
"""True for rows that have a value; None for an absent bitmap."""

_UNITS = ["s", "ms", "us", "ns"]
_TEXT = ("string", "large_string")
_BINARY = ("binary", "large_binary")
_VIEWS = ("string_view", "binary_view")
_VARIABLE_WIDTH = (*_TEXT, *_BINARY, "list", "large_list", "fixed_size_list")


def record_digest(batches: Sequence[pa.RecordBatch]) -> str:
    """Section 1 of the facts, base16."""
    schema = batches[0].schema
    record = hashlib.sha3_256(b"".join(_names(schema, 0)))
    for index, leaf in enumerate(_leaf_types(schema)):
        hasher = hashlib.sha3_256(_header(leaf))
        for batch in batches:
            array, nulls = list(_leaves(batch))[index]
            hasher.update(_values(array, nulls))
        record.update(hasher.digest())
    return record.hexdigest()


def decoded_by_the_reference(batch: pa.RecordBatch, cuts: list[int]) -> pa.RecordBatch:
    """Section 4's last paragraph, word for word; `cuts` are the ends of the parts of a batch, with 0 in front."""
    columns = [_decoded(column, None, cuts) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _u16(number: int) -> bytes:
    return struct.pack("<H", number)


def _u64(number: int) -> bytes:
    return struct.pack("<Q", number & (2**64 - 1))


def _names(fields: Any, level: int) -> Iterator[bytes]:
    for field in fields:
        name = field.name.encode()
        yield _u64(len(name)) + name + _u64(level)
        if types.is_struct(field.type):
            yield from _names(field.type, level + 1)


def _leaf_types(fields: Any) -> Iterator[pa.DataType]:
    for field in fields:
        if types.is_struct(field.type):
            yield from _leaf_types(field.type)
        else:
            yield field.type


def _header(kind: pa.DataType) -> bytes:
    if types.is_integer(kind):
        return _u16(1) + bytes([types.is_signed_integer(kind)]) + _u64(kind.bit_width)
    if types.is_floating(kind):
        return _u16(2) + _u64(kind.bit_width)
    if str(kind).startswith((*_BINARY, "fixed_size_binary")):
        return _u16(3)
    if str(kind).startswith(_TEXT):
        return _u16(4)
    if types.is_boolean(kind):
        return _u16(5)
    if types.is_decimal(kind):
        return _u16(6) + _u64(kind.bit_width) + _u64(kind.precision) + _u64(kind.scale)
    if types.is_date(kind):
        return _u16(7) + _u64(kind.bit_width) + _u16(0 if kind.bit_width == 32 else 1)
    if types.is_time(kind):
        return _u16(8) + _u64(kind.bit_width) + _u16(_UNITS.index(kind.unit))
    if types.is_timestamp(kind):
        zone = b"\0" if kind.tz is None else _u64(len(kind.tz)) + kind.tz.encode()
        return _u16(9) + _u16(_UNITS.index(kind.unit)) + zone
    assert "list" in str(kind), kind
    return _u16(11) + _header(kind.value_type)


def _own_nulls(array: pa.Array) -> Nulls:
    valid = [scalar.is_valid for scalar in array]
    return None if all(valid) else valid


def _combined(handed_down: Nulls, own: Nulls) -> Nulls:
    if handed_down is None:
        return own
    if all(handed_down):
        return None
    if own is None:
        return handed_down
    return [above or below for above, below in zip(handed_down, own, strict=True)]


def _leaves(batch: pa.RecordBatch) -> Iterator[tuple[pa.Array, Nulls]]:
    for column in batch.columns:
        yield from _leaves_below(column, None)


def _leaves_below(array: pa.Array, handed_down: Nulls) -> Iterator[tuple[pa.Array, Nulls]]:
    nulls = _combined(handed_down, _own_nulls(array))
    if types.is_struct(array.type):
        for index in range(array.type.num_fields):
            yield from _leaves_below(array.field(index), nulls)
    else:
        yield array, nulls


def _values(array: pa.Array, nulls: Nulls) -> bytes:
    valid = nulls or [True] * len(array)
    return b"".join(_value(array, row) if valid[row] else b"\0" for row in range(len(array)))


def _value(array: pa.Array, row: int) -> bytes:
    kind = array.type
    if "list" in str(kind):
        items = _items(array, row)
        return _u64(len(items)) + _values(items, _own_nulls(items))
    if str(kind).startswith((*_TEXT, *_BINARY)):
        data = _text(array, row)
        return _u64(len(data)) + data
    if types.is_boolean(kind):
        position = array.offset + row
        return bytes([1 + (array.buffers()[1][position // 8] >> position % 8 & 1)])
    prefix = _u64(kind.byte_width) if str(kind).startswith("fixed_size_binary") else b""
    return prefix + _stored(array, row)


def _text(array: pa.Array, row: int) -> bytes:
    """What the offsets or the view of a row point at, null or not."""
    bare = pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], offset=array.offset)
    text = bare[row].as_py()
    return text.encode() if isinstance(text, str) else bytes(text)


def _items(array: pa.Array, row: int) -> pa.Array:
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return array.values.slice((array.offset + row) * size, size)
    return array[row].values if array[row].is_valid else array.values.slice(0, 0)


def _stored(array: pa.Array, row: int) -> bytes:
    """What lies in memory at a row, null or not."""
    width = array.type.bit_width // 8
    data: bytes = array.buffers()[1].to_pybytes()
    return data[(array.offset + row) * width :][:width]


def _decoded(array: pa.Array, enclosing: Nulls, cuts: list[int]) -> pa.Array:
    valid = [scalar.is_valid for scalar in array]
    present = [mine and above for mine, above in zip(valid, enclosing or valid, strict=True)]
    if types.is_struct(array.type):
        members = [_decoded(array.field(i), present, cuts) for i in range(array.type.num_fields)]
        mask = pa.array([not flag for flag in valid])
        return pa.StructArray.from_arrays(members, [member.name for member in array.type], mask=mask)
    if enclosing is None or (str(array.type).startswith(_VARIABLE_WIDTH) and str(array.type) not in _VIEWS):
        return array
    read = _flag if types.is_boolean(array.type) else _text if str(array.type) in _VIEWS else _stored
    stored = [read(array, row) for row in range(len(array))]
    zero = b"" if read is _text else bytes(len(stored[0])) if stored else b""
    moved = [value for start, end in pairwise(cuts) for value in _padded(stored[start:end], present[start:end], zero)]
    return _rebuilt(array.type, moved, valid)


def _flag(array: pa.Array, row: int) -> bytes:
    return b"\1" if array[row].as_py() else b"\0"


def _padded(values: list[bytes], present: list[bool], zero: bytes) -> list[bytes]:
    rows = [row for row, flag in enumerate(present) if flag]
    buffer = [values[row] for row in rows]
    buffer += [zero] * (len(values) - len(buffer))
    for source in reversed(range(len(rows))):
        if rows[source] <= source:
            break
        buffer[rows[source]] = buffer[source]
    return buffer


def _rebuilt(kind: pa.DataType, values: list[bytes], valid: list[bool]) -> pa.Array:
    bitmap = pa.array(valid).buffers()[1]
    if str(kind) in _VIEWS:
        plain = pa.array(values, pa.large_binary())
        layout = pa.large_string() if "string" in str(kind) else pa.large_binary()
        return pa.Array.from_buffers(layout, len(values), [bitmap, *plain.buffers()[1:]])
    if types.is_boolean(kind):
        data = pa.array([value == b"\1" for value in values]).buffers()[1]
    else:
        data = pa.py_buffer(b"".join(values))
    return pa.Array.from_buffers(kind, len(values), [bitmap, data])
