"""Buffers that no writer of ours would make: tables put together by hand, for readers to take or to refuse."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping

from flatbuffers import Builder

from odf_common.wire._generated.layout import UNIONS
from odf_common.wire.versions import METADATA_BLOCK_CODE

Slots = Mapping[int, int | bytes]
"""Slot → the offset of a child that was written before, or the bytes that lie in the table itself."""

Child = Callable[[Builder], int]
"""Writes something and says where."""


def u8(number: int) -> bytes:
    return struct.pack("<B", number)


def i16(number: int) -> bytes:
    return struct.pack("<h", number)


def i32(number: int) -> bytes:
    return struct.pack("<i", number)


def i64(number: int) -> bytes:
    return struct.pack("<q", number)


def u64(number: int) -> bytes:
    return struct.pack("<Q", number)


def moment(year: int = 2020, day: int = 1, second: int = 43_200, nanosecond: int = 0) -> bytes:
    """A Timestamp struct."""
    return struct.pack("<iHxxII", year, day, second, nanosecond)


def event_number(name: str) -> bytes:
    """The discriminator of an event."""
    return u8(UNIONS["MetadataEvent"].index(name) + 1)


def table(builder: Builder, slots: Slots) -> int:
    """A table with these slots and nothing else; bytes are written where they fall, unaligned."""
    builder.StartObject(max(slots, default=-1) + 1)
    for index, item in slots.items():
        if isinstance(item, int):
            builder.PrependUOffsetTRelativeSlot(index, item, 0)
            continue
        builder.Prep(1, len(item))
        builder.head -= len(item)
        builder.Bytes[builder.head : builder.head + len(item)] = item
        builder.Slot(index)
    return int(builder.EndObject())


def vector(builder: Builder, children: Iterable[int]) -> int:
    """A vector of offsets to children, which may be the same several times."""
    offsets = list(children)
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def finished(root: Child) -> bytes:
    """A complete buffer with this root."""
    builder = Builder(1024)
    builder.Finish(root(builder))
    return bytes(builder.Output())


def manifest(
    content: bytes | None, *, kind: int = METADATA_BLOCK_CODE, version: int = 2, more: Slots | None = None
) -> bytes:
    """A block file around the content."""

    def root(builder: Builder) -> int:
        slots: dict[int, int | bytes] = {0: i64(kind), 1: i32(version)}
        if content is not None:
            slots[2] = int(builder.CreateByteVector(content))
        return table(builder, {**slots, **(more or {})})

    return finished(root)


def block(event_type: bytes, event: Child, more: Slots | None = None) -> bytes:
    """A block file with this event, first of its chain."""

    def root(builder: Builder) -> int:
        value = event(builder)
        return table(builder, {0: moment(), 3: event_type, 4: value, **(more or {})})

    return manifest(finished(root))


def event_block(name: str, slots: Callable[[Builder], Slots] = lambda builder: {}) -> bytes:
    """A block file with an event of this kind and these slots."""
    return block(event_number(name), lambda builder: table(builder, slots(builder)))


def schema_block(data_type: bytes, value: Child, more: Slots | None = None) -> bytes:
    """A block file that sets a native schema of one column `a` with this type."""

    def slots(builder: Builder) -> Slots:
        kind = value(builder)
        name = int(builder.CreateString("a"))
        field = table(builder, {0: name, 1: data_type, 2: kind, **(more or {})})
        return {1: table(builder, {0: vector(builder, [field])})}

    return event_block("SetDataSchema", slots)
