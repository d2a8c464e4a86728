"""Rows as one binary value each, without loss and without a loop over rows: what a store keeps of a row.

A value is a fixed part, then variable pieces one behind the other:

    validity bytes (0, 1) | values of fixed width | length of each piece, 4 bytes | pieces

Everything is little-endian, nulls are zeros and empty pieces, so equal rows have equal values and no others have. The
schema is not in the value: whoever keeps values keeps it beside them. A list becomes two pieces: the lengths of its
items, and the items, each encoded in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

Bytes = npt.NDArray[np.uint8]

_LENGTH_SIZE = 4


class RowCodec:
    """Encodes the rows of tables with one schema, and decodes them. Equal schemas make equal values."""

    def __init__(self, schema: pa.Schema) -> None:
        """NotImplementedError for a type that no dataset holds."""
        self.schema = schema
        self._columns = [_column_of(column.type) for column in schema]
        self._pieces = sum(column.pieces for column in self._columns)
        self._width = sum(column.width for column in self._columns) + _LENGTH_SIZE * self._pieces

    def encode(self, table: pa.Table) -> pa.BinaryArray:
        """One value for each row of a table with this schema."""
        return self._encoded([_one(table[name]) for name in self.schema.names], table.num_rows)

    def decode(self, values: pa.BinaryArray) -> pa.Table:
        """The rows of values that `encode` made with this schema; ValueError for others, as far as it shows."""
        arrays = self._decoded(values)
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _encoded(self, arrays: list[pa.Array], count: int) -> pa.BinaryArray:
        writer = _Writer(np.zeros((count, self._width), np.uint8))
        for column, array in zip(self._columns, arrays, strict=True):
            column.write(array, writer)
        return writer.joined()

    def _decoded(self, values: pa.BinaryArray) -> list[pa.Array]:
        reader = _Reader(values, self._width, self._pieces)
        return [column.read(reader) for column in self._columns]


@dataclass
class _Writer:
    """The fixed parts of all rows, filled from the left, and their pieces so far."""

    fixed: Bytes
    at: int = 0
    pieces: list[pa.Array] = field(default_factory=list)

    def put(self, values: Bytes) -> None:
        """The next bytes of the fixed part of each row."""
        width = values.shape[1]
        self.fixed[:, self.at : self.at + width] = values
        self.at += width

    def joined(self) -> pa.BinaryArray:
        """All rows."""
        count, width = self.fixed.shape
        for piece in self.pieces:
            self.put(_bytes_of(pc.binary_length(piece).to_numpy().astype("<i4"), _LENGTH_SIZE))
        if count * width > np.iinfo(np.int32).max:
            raise ValueError(f"{count} rows are too many to encode at once: take them in parts")
        offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * np.int32(width))
        start = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(self.fixed)])
        return pc.binary_join_element_wise(start, *self.pieces, b"") if self.pieces else start


class _Reader:
    """The parts of rows, taken in the order in which they were put."""

    def __init__(self, values: pa.BinaryArray, width: int, pieces: int) -> None:
        self._at = 0
        self._piece = 0
        self._step = 1 + pieces
        offsets, data = _offsets(values), values.buffers()[2]
        self.count = len(values)
        if not self.count:
            self._fixed = np.zeros((0, width), np.uint8)
            self._parts = pa.array([], pa.binary())
            return
        if values.null_count or (np.diff(offsets) < width).any():
            raise ValueError("a value is no row of this schema: it is too short")
        self._fixed = _gathered(data, offsets[:-1], width)
        lengths = np.zeros((self.count, 0), np.int32)
        if pieces:
            lengths = self._fixed[:, width - _LENGTH_SIZE * pieces :].copy().view("<i4")
        ends = np.cumsum(np.concatenate([offsets[:-1, None] + width, lengths], axis=1), axis=1, dtype=np.int64)
        if (lengths < 0).any() or (ends[:, -1] != offsets[1:]).any():
            raise ValueError("a value is no row of this schema: its length is another one")
        # The parts of all rows lie one behind the other, so they are one binary array as they are.
        bounds = np.empty(self.count * self._step + 1, np.int32)
        bounds[0] = offsets[0]
        bounds[1:] = ends.reshape(-1)
        self._parts = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), data])

    def take(self, width: int) -> Bytes:
        """The next bytes of the fixed part of each row."""
        self._at += width
        return np.ascontiguousarray(self._fixed[:, self._at - width : self._at])

    def piece(self) -> pa.BinaryArray:
        """The next piece of each row."""
        self._piece += 1
        if not self.count:
            return self._parts
        return self._parts.take(pa.array(np.arange(self._piece, self.count * self._step, self._step)))


class _Column(Protocol):
    """How the values of one type are put into rows; `width` bytes of the fixed part and so many pieces."""

    width: int
    pieces: int

    def write(self, array: pa.Array, writer: _Writer) -> None: ...

    def read(self, reader: _Reader) -> pa.Array: ...


class _Null:
    width = 0
    pieces = 0

    def write(self, array: pa.Array, writer: _Writer) -> None:
        pass

    def read(self, reader: _Reader) -> pa.Array:
        return pa.nulls(reader.count)


class _Fixed:
    """Numbers, times, and bytes of one length."""

    pieces = 0

    def __init__(self, data_type: pa.DataType) -> None:
        self._type = data_type
        self._size = data_type.byte_width if not types.is_boolean(data_type) else 1
        self.width = 1 + self._size

    def write(self, array: pa.Array, writer: _Writer) -> None:
        writer.put(_validity(array))
        if types.is_boolean(self._type):
            writer.put(_bytes_of(pc.fill_null(array, False).cast(pa.uint8()).to_numpy(), 1))
            return
        values = _bytes_of(np.frombuffer(array.buffers()[1] or b"", np.uint8), self._size)
        values = values[array.offset : array.offset + len(array)]
        if array.null_count:
            values = np.where(_validity(array) == 1, values, np.uint8(0))
        writer.put(values)

    def read(self, reader: _Reader) -> pa.Array:
        valid, values = reader.take(1), reader.take(self._size)
        if types.is_boolean(self._type):
            return _masked(pa.array(values[:, 0] == 1), valid)
        return pa.Array.from_buffers(self._type, reader.count, [_bitmap(valid), pa.py_buffer(values)])


class _Variable:
    """Texts and bytes."""

    width = 1
    pieces = 1

    def __init__(self, data_type: pa.DataType) -> None:
        self._type = data_type

    def write(self, array: pa.Array, writer: _Writer) -> None:
        writer.put(_validity(array))
        plain = pa.string() if types.is_string_view(self._type) or types.is_large_string(self._type) else None
        values = (array if plain is None else array.cast(plain)).cast(pa.binary())
        writer.pieces.append(pc.fill_null(values, b"") if values.null_count else values)

    def read(self, reader: _Reader) -> pa.Array:
        valid, values = reader.take(1), reader.piece()
        plain = values.cast(pa.string()) if not types.is_binary(self._type) else values
        return _masked(plain if plain.type == self._type else plain.cast(self._type), valid)


class _Struct:
    def __init__(self, data_type: pa.StructType) -> None:
        self._type = data_type
        self._members = [_column_of(member.type) for member in data_type]
        self.width = 1 + sum(member.width for member in self._members)
        self.pieces = sum(member.pieces for member in self._members)

    def write(self, array: pa.Array, writer: _Writer) -> None:
        writer.put(_validity(array))
        for member, values in zip(self._members, array.flatten(), strict=True):
            member.write(values, writer)

    def read(self, reader: _Reader) -> pa.Array:
        valid = reader.take(1)
        members = [member.read(reader) for member in self._members]
        if not members:
            return pa.Array.from_buffers(self._type, reader.count, [_bitmap(valid)])
        return pa.StructArray.from_arrays(members, fields=list(self._type), mask=_mask_of(valid))


class _List:
    """Lists of any kind, and maps, which are lists of their entries."""

    width = 1
    pieces = 2

    def __init__(self, data_type: pa.DataType) -> None:
        self._type = data_type
        self._items = RowCodec(pa.schema([pa.field("item", _item_type(data_type))]))

    def write(self, array: pa.Array, writer: _Writer) -> None:
        writer.put(_validity(array))
        items, counts = _items_of(array)
        encoded = self._items._encoded([items], len(items))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        sizes = np.diff(_offsets(encoded)).astype("<i4")
        writer.pieces.append(_runs(bounds * _LENGTH_SIZE, pa.py_buffer(sizes)))
        writer.pieces.append(_runs(_offsets(encoded)[bounds], encoded.buffers()[2]))

    def read(self, reader: _Reader) -> pa.Array:
        valid, sizes, data = reader.take(1), reader.piece(), reader.piece()
        starts = np.concatenate([[0], np.cumsum(_contents(sizes).view("<i4"), dtype=np.int64)])
        encoded = _runs(starts, pa.py_buffer(_contents(data)))
        items = self._items._decoded(encoded)[0]
        counts = (pc.binary_length(sizes).to_numpy() // _LENGTH_SIZE).astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        return _list_of(self._type, items, bounds, valid)


def _column_of(data_type: pa.DataType) -> _Column:
    if types.is_null(data_type):
        return _Null()
    if types.is_struct(data_type):
        return _Struct(data_type)
    if _is_list(data_type):
        return _List(data_type)
    if _is_variable(data_type):
        return _Variable(data_type)
    if types.is_primitive(data_type) or types.is_decimal(data_type) or types.is_fixed_size_binary(data_type):
        return _Fixed(data_type)
    raise NotImplementedError(f"rows with values of the type {data_type} have no encoding")


def _is_variable(data_type: pa.DataType) -> bool:
    return any(
        test(data_type)
        for test in (
            types.is_string,
            types.is_binary,
            types.is_large_string,
            types.is_large_binary,
            types.is_string_view,
            types.is_binary_view,
        )
    )


def _is_list(data_type: pa.DataType) -> bool:
    plain = types.is_list(data_type) or types.is_large_list(data_type)
    return bool(plain or types.is_fixed_size_list(data_type) or types.is_map(data_type))


def _item_type(data_type: pa.DataType) -> pa.DataType:
    if types.is_map(data_type):
        return pa.struct([data_type.key_field, data_type.item_field])
    return data_type.value_type


def _items_of(array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The items of all lists one behind the other, without what lies behind nulls, and how many each list has."""
    data_type = array.type
    if types.is_map(data_type):
        array = array.cast(pa.list_(pa.field("entries", _item_type(data_type), nullable=False)))
    if types.is_fixed_size_list(data_type):
        counts = _validity(array)[:, 0].astype(np.int64) * data_type.list_size
    else:
        counts = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    return array.flatten(), counts


def _list_of(data_type: pa.DataType, items: pa.Array, bounds: npt.NDArray[np.int64], valid: Bytes) -> pa.Array:
    mask = _mask_of(valid)
    if types.is_fixed_size_list(data_type):
        # Not a cast, which makes items for nulls out of whatever lies in memory.
        places = bounds[:-1, None] + np.arange(data_type.list_size)
        indices = pa.array(places.reshape(-1), mask=np.repeat(valid[:, 0] == 0, data_type.list_size))
        return pa.FixedSizeListArray.from_arrays(items.take(indices), type=data_type, mask=mask)
    if types.is_large_list(data_type):
        return pa.LargeListArray.from_arrays(pa.array(bounds), items, type=data_type, mask=mask)
    offsets = pa.array(bounds, pa.int32())
    if types.is_map(data_type):
        keys, values = items.flatten()
        return pa.MapArray.from_arrays(offsets, keys, values, type=data_type, mask=mask)
    return pa.ListArray.from_arrays(offsets, items, type=data_type, mask=mask)


def _runs(bounds: npt.NDArray[np.int64], data: pa.Buffer) -> pa.BinaryArray:
    """The bytes from each bound to the next."""
    if len(bounds) and bounds[-1] > np.iinfo(np.int32).max:
        raise ValueError("the items of lists are too many to encode at once: take the rows in parts")
    offsets = pa.py_buffer(bounds.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, offsets, data])


def _contents(values: pa.BinaryArray) -> Bytes:
    """All bytes of values that lie one behind the other."""
    offsets = _offsets(values)
    data = values.buffers()[2]
    if data is None:
        return np.empty(0, np.uint8)
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].copy()


def _offsets(values: pa.BinaryArray) -> npt.NDArray[np.int64]:
    if not len(values):
        return np.zeros(1, np.int64)
    found = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
    return found.astype(np.int64)


def _gathered(data: pa.Buffer, starts: npt.NDArray[np.int64], width: int) -> Bytes:
    """So many bytes from each start on."""
    if not width:
        return np.zeros((len(starts), 0), np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), width)
    return windows[starts]


def _bytes_of(values: npt.NDArray[np.generic], width: int) -> Bytes:
    flat = np.ascontiguousarray(values).view(np.uint8)
    whole = len(flat) // width if width else 0
    return flat[: whole * width].reshape(whole, width) if width else np.zeros((0, 0), np.uint8)


def _validity(array: pa.Array) -> Bytes:
    valid = np.ones((len(array), 1), np.uint8)
    if array.null_count:
        valid[:, 0] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _mask_of(valid: Bytes) -> pa.Array | None:
    return None if valid.all() else pa.array(valid[:, 0] == 0)


def _bitmap(valid: Bytes) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid[:, 0], bitorder="little"))


def _masked(array: pa.Array, valid: Bytes) -> pa.Array:
    return array if valid.all() else pc.if_else(pa.array(valid[:, 0] == 1), array, pa.scalar(None, array.type))


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else (pa.array([], column.type))
    )
