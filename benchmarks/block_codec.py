"""Blocks to bytes and back: the codec that is made from the schema, beside the same calls written by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

from flatbuffers import Builder

from benchmarks.figures import medians, print_figure
from odf_common.identity.multihash import ARROW0_SHA3_256, Multihash, sha3_256
from odf_common.metadata.events import AddData
from odf_common.metadata.fragments import DataSlice, OffsetInterval, SourceState
from odf_common.metadata.manifests import MetadataBlock
from odf_common.timestamp import Timestamp
from odf_common.wire.decode import decode_block
from odf_common.wire.encode import encode_block

BLOCKS = 500
ROUNDS = 15
GOAL = ">= 5000"

PREVIOUS, PHYSICAL = sha3_256(b"previous").to_bytes(), sha3_256(b"physical").to_bytes()
LOGICAL = Multihash(ARROW0_SHA3_256, bytes(32)).to_bytes()
STATE = ("default", "example.org/position", '{"0":1000,"1":1000}')

BLOCK = MetadataBlock(
    system_time=Timestamp.parse("2020-01-01T12:00:00Z"),
    prev_block_hash=Multihash.from_bytes(PREVIOUS),
    sequence_number=117,
    event=AddData(
        prev_offset=9,
        new_data=DataSlice(
            logical_hash=Multihash.from_bytes(LOGICAL),
            physical_hash=Multihash.from_bytes(PHYSICAL),
            offset_interval=OffsetInterval(start=10, end=99),
            size=100,
        ),
        new_watermark=Timestamp.parse("2020-01-01T11:00:00Z"),
        new_source_state=SourceState(source_name=STATE[0], kind=STATE[1], value=STATE[2]),
    ),
)


def write_by_hand() -> bytes:
    """The bytes of BLOCK by bare calls of the FlatBuffers library."""
    builder = Builder(1024)
    previous = builder.CreateByteVector(PREVIOUS)
    logical = builder.CreateByteVector(LOGICAL)
    physical = builder.CreateByteVector(PHYSICAL)
    builder.StartObject(2)
    builder.PrependUint64Slot(0, 10, 0)
    builder.PrependUint64Slot(1, 99, 0)
    interval = builder.EndObject()
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(0, logical, 0)
    builder.PrependUOffsetTRelativeSlot(1, physical, 0)
    builder.PrependUOffsetTRelativeSlot(2, interval, 0)
    builder.PrependUint64Slot(3, 100, 0)
    new_data = builder.EndObject()
    texts = [builder.CreateString(text) for text in STATE]
    builder.StartObject(3)
    for slot, text in enumerate(texts):
        builder.PrependUOffsetTRelativeSlot(slot, text, 0)
    state = builder.EndObject()
    builder.StartObject(7)
    builder.PrependUint64Slot(1, 9, 0)
    builder.PrependUOffsetTRelativeSlot(2, new_data, 0)
    write_timestamp_by_hand(builder, 4, (2020, 1, 39_600, 0))
    builder.PrependUOffsetTRelativeSlot(5, state, 0)
    event = builder.EndObject()
    builder.StartObject(5)
    write_timestamp_by_hand(builder, 0, (2020, 1, 43_200, 0))
    builder.PrependUOffsetTRelativeSlot(1, previous, 0)
    builder.PrependUint64Slot(2, 117, 0)
    builder.PrependUint8Slot(3, 1, 0)
    builder.PrependUOffsetTRelativeSlot(4, event, 0)
    builder.Finish(builder.EndObject())
    return write_manifest_by_hand(bytes(builder.Output()))


def write_timestamp_by_hand(builder: Builder, slot: int, parts: tuple[int, int, int, int]) -> None:
    """A Timestamp struct, unaligned as in manifest version 2."""
    builder.Prep(1, 16)
    builder.head -= 16
    struct.pack_into("<iHxxII", builder.Bytes, builder.head, *parts)
    builder.Slot(slot)


def write_manifest_by_hand(content: bytes) -> bytes:
    """The envelope of a block."""
    builder = Builder(1024)
    vector = builder.CreateByteVector(content)
    builder.StartObject(3)
    builder.PrependInt64Slot(0, 0x400000, 0)
    builder.PrependInt32Slot(1, 2, 0)
    builder.PrependUOffsetTRelativeSlot(2, vector, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def times(count: int, run: Callable[[], object]) -> None:
    """Run so often."""
    for _ in range(count):
        run()


def main() -> None:
    """Print blocks per second on one core."""
    data = encode_block(BLOCK)
    assert write_by_hand() == data
    assert decode_block(data).block == BLOCK
    encoding, by_hand, decoding = (
        BLOCKS / seconds
        for seconds in medians(
            [
                partial(times, BLOCKS, lambda: sha3_256(encode_block(BLOCK))),
                partial(times, BLOCKS, lambda: sha3_256(write_by_hand())),
                partial(times, BLOCKS, lambda: decode_block(data)),
            ],
            rounds=ROUNDS,
        )
    )
    print_figure("encode and hash an AddData block", encoding, "blocks/s", goal=GOAL, size=len(data))
    print_figure("the same, as a part of bare FlatBuffers calls", encoding / by_hand, "1", goal=">= 0.8", bare=by_hand)
    print_figure("hash and decode an AddData block", decoding, "blocks/s", goal=GOAL, size=len(data))


if __name__ == "__main__":
    main()
