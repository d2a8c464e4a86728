"""FlatBuffers reading that trusts nothing: the Python library has no verifier of its own."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from odf_common.errors import MalformedBytesError
from odf_common.wire.limits import ITEM_SIZE, MAX_DEPTH, MAX_ITEMS, SHARED_ITEMS, SHARED_SIZE

_SCALARS = {
    name: struct.Struct("<" + code)
    for name, code in {
        "bool": "B",
        "ubyte": "B",
        "short": "h",
        "int": "i",
        "uint": "I",
        "long": "q",
        "ulong": "Q",
    }.items()
}
_U16_PAIR = struct.Struct("<HH")
_I32 = _SCALARS["int"]
_U32 = _SCALARS["uint"]
_TIMESTAMP = struct.Struct("<iHxxII")
_VTABLE_HEADER = 4  # bytes: length of the vtable, size of the table
_MAX_SLOTS = 512
_VTABLE_ENTRIES = [struct.Struct(f"<{count}H") for count in range(_MAX_SLOTS + 1)]


class BufferReader:
    """One finished FlatBuffer. Every failure is a MalformedBytesError that names the byte.

    Offsets may share targets, so a small buffer can unfold into a huge tree of tables, or into many copies of a long
    text: whatever is read is paid for out of two allowances.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._items_left = min(MAX_ITEMS, SHARED_ITEMS + len(data) // ITEM_SIZE)
        self._bytes_left = max(SHARED_SIZE, len(data))

    def root(self) -> Table:
        """The root table."""
        return Table(self, self.u32(0), depth=1)

    def spend(self, items: int) -> None:
        """Pay for tables, texts of vectors and unknown slots."""
        self.afford(items)
        self._items_left -= items

    def afford(self, items: int) -> None:
        """Refuse at once what could not be paid for item by item."""
        if items > self._items_left:
            raise MalformedBytesError("malformed buffer: more tables and elements than its size allows")

    def u32(self, position: int) -> int:
        """An unsigned 32-bit integer."""
        return int(self.unpack(_U32, position)[0])

    def unpack(self, layout: struct.Struct, position: int) -> tuple[int, ...]:
        """Unaligned little-endian values; negative positions are out of range, not counted from the end."""
        if position < 0 or position + layout.size > len(self.data):
            raise MalformedBytesError(f"malformed buffer: it has no {layout.size} bytes at position {position}")
        return layout.unpack_from(self.data, position)

    def vector(self, position: int, element_size: int) -> tuple[int, int]:
        """Start and number of elements of a vector whose offset lies at `position`."""
        start = position + self.u32(position)
        count = self.u32(start)
        if start + 4 + count * element_size > len(self.data):
            raise MalformedBytesError(f"malformed buffer: a vector of {count} elements at byte {start} passes its end")
        return start + 4, count

    def bytes(self, position: int) -> bytes:
        """The byte vector whose offset lies at `position`."""
        start, size = self.vector(position, 1)
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise MalformedBytesError("malformed buffer: more text than its size allows")
        return self.data[start : start + size]

    def string(self, position: int) -> str:
        """The string whose offset lies at `position`."""
        try:
            return self.bytes(position).decode("utf-8")
        except UnicodeDecodeError as error:
            raise MalformedBytesError(f"malformed buffer: the string at byte {position} is not UTF-8") from error


class Table:
    """A table of a buffer, with its slots looked up but nothing else read."""

    __slots__ = ("_depth", "_entries", "_position", "_reader", "_size")

    def __init__(self, reader: BufferReader, position: int, *, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise MalformedBytesError(f"malformed buffer: tables nested deeper than {MAX_DEPTH}")
        reader.spend(1)
        vtable = position - reader.unpack(_I32, position)[0]
        vtable_size, self._size = reader.unpack(_U16_PAIR, vtable)
        slots = (vtable_size - _VTABLE_HEADER) // 2
        if not 0 <= slots <= _MAX_SLOTS or position + self._size > len(reader.data):
            raise MalformedBytesError(f"malformed buffer: the table at byte {position} has no valid layout")
        self._entries = reader.unpack(_VTABLE_ENTRIES[slots], vtable + _VTABLE_HEADER)
        self._reader = reader
        self._position = position
        self._depth = depth

    def _at(self, index: int, size: int) -> int | None:
        """Where the slot's `size` bytes lie, None when it is absent."""
        if index >= len(self._entries) or not (entry := self._entries[index]):
            return None
        if entry + size > self._size:
            raise MalformedBytesError(f"malformed buffer: slot {index} passes the end of its table")
        return self._position + entry

    def present_beyond(self, width: int) -> tuple[int, ...]:
        """Indexes of the slots behind the first `width` that hold something."""
        if len(self._entries) <= width:
            return ()
        self._reader.spend(len(self._entries) - width)
        return tuple(index for index, entry in enumerate(self._entries[width:], width) if entry)

    def optional_scalar(self, index: int, kind: str) -> int | bool | None:
        """A number or bool, None when absent."""
        layout = _SCALARS[kind]
        position = self._at(index, layout.size)
        if position is None:
            return None
        value = self._reader.unpack(layout, position)[0]
        return value != 0 if kind == "bool" else value

    def scalar(self, index: int, kind: str) -> int:
        """A number, 0 when absent."""
        return self.optional_scalar(index, kind) or 0

    def timestamp(self, index: int) -> tuple[int, int, int, int] | None:
        """Year, ordinal day, second of the day, nanosecond; at whatever alignment."""
        position = self._at(index, _TIMESTAMP.size)
        if position is None:
            return None
        year, ordinal, second, nanosecond = self._reader.unpack(_TIMESTAMP, position)
        return year, ordinal, second, nanosecond

    def bytes(self, index: int) -> bytes | None:
        """A byte vector."""
        position = self._at(index, 4)
        return None if position is None else self._reader.bytes(position)

    def string(self, index: int) -> str | None:
        """A string."""
        position = self._at(index, 4)
        return None if position is None else self._reader.string(position)

    def table(self, index: int) -> Table | None:
        """A table."""
        position = self._at(index, 4)
        return None if position is None else self._follow(position)

    def strings(self, index: int) -> tuple[str, ...] | None:
        """A vector of strings."""
        positions = self._elements(index)
        if positions is None:
            return None
        self._reader.spend(len(positions))
        return tuple(self._reader.string(position) for position in positions)

    def tables(self, index: int) -> Iterator[Table] | None:
        """A vector of tables, each looked up when its turn comes."""
        positions = self._elements(index)
        return None if positions is None else (self._follow(position) for position in positions)

    def _elements(self, index: int) -> range | None:
        position = self._at(index, 4)
        if position is None:
            return None
        start, count = self._reader.vector(position, 4)
        self._reader.afford(count)
        return range(start, start + 4 * count, 4)

    def _follow(self, position: int) -> Table:
        return Table(self._reader, position + self._reader.u32(position), depth=self._depth + 1)
