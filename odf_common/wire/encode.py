"""Metadata blocks → bytes, exactly as the reference implementation writes them (metadata-wire facts, section 4)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from flatbuffers import Builder

from odf_common.errors import OdfError
from odf_common.identity.multihash import sha3_256
from odf_common.metadata.events import UnknownEvent
from odf_common.metadata.manifests import MetadataBlock
from odf_common.timestamp import Timestamp
from odf_common.wire._generated.layout import ENUMS
from odf_common.wire.encoded_block import EncodedBlock
from odf_common.wire.layout import Slot
from odf_common.wire.limits import MAX_BLOCK_SIZE, MAX_DEPTH, MAX_ITEMS
from odf_common.wire.plan import MEMBER_NUMBERS, PLANS, SlotPlan
from odf_common.wire.versions import DEFAULT_VERSION, METADATA_BLOCK_CODE, TIMESTAMP_ALIGNMENT

_INITIAL_SIZE = 1024  # bytes; most blocks fit, others let the builder grow
_OFFSET_SIZE = 4  # bytes
_TIMESTAMP = struct.Struct("<iHxxII")


class NotEncodableError(OdfError):
    """The block holds what only its own bytes can express, or more than any reader would take."""


def encode_block(block: MetadataBlock, *, manifest_version: int = DEFAULT_VERSION) -> bytes:
    """The bytes of a block file: a Manifest whose content is the block. Version 2 or 3 (aligned timestamps).

    NotEncodableError for an event of a later version, and for what is too large or too deep to be read again.
    """
    if manifest_version not in TIMESTAMP_ALIGNMENT:
        raise NotEncodableError(f"manifest version {manifest_version} is not one of {sorted(TIMESTAMP_ALIGNMENT)}")
    if isinstance(block.event, UnknownEvent):
        raise NotEncodableError(
            f"event type {block.event.type_code} is of a later version; only the block's original bytes can be kept"
        )
    content = _BlockWriter(TIMESTAMP_ALIGNMENT[manifest_version]).write(block)
    data = _envelope(content, manifest_version)
    if len(data) > MAX_BLOCK_SIZE:
        raise NotEncodableError(f"the block takes {len(data)} bytes; no more than {MAX_BLOCK_SIZE} are read")
    return data


def seal(block: MetadataBlock, *, manifest_version: int = DEFAULT_VERSION) -> EncodedBlock:
    """Give a block its bytes and its hash."""
    data = encode_block(block, manifest_version=manifest_version)
    return EncodedBlock(data, sha3_256(data), manifest_version, block)


def _envelope(content: bytes, version: int) -> bytes:
    builder = Builder(len(content) + _INITIAL_SIZE)
    vector = builder.CreateByteVector(content)
    builder.StartObject(3)
    builder.PrependInt64Slot(0, METADATA_BLOCK_CODE, 0)
    builder.PrependInt32Slot(1, version, 0)
    builder.PrependUOffsetTRelativeSlot(2, vector, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


class _BlockWriter:
    """Writes tables depth first, in two passes each: children, then fields, both in slot order."""

    def __init__(self, timestamp_alignment: int) -> None:
        self._builder = Builder(_INITIAL_SIZE)
        self._timestamp_alignment = timestamp_alignment
        self._depth = 0
        self._items = 0
        self._prepend: dict[str, Callable[[Any], None]] = {
            "bool": self._builder.PrependBool,
            "short": self._builder.PrependInt16,
            "int": self._builder.PrependInt32,
            "uint": self._builder.PrependUint32,
            "long": self._builder.PrependInt64,
            "ulong": self._builder.PrependUint64,
        }

    def write(self, block: MetadataBlock) -> bytes:
        self._builder.Finish(self._table("MetadataBlock", block))
        return bytes(self._builder.Output())

    def _table(self, table: str, value: Any) -> int:
        plan = PLANS[table]
        self._count(1)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotEncodableError(f"the block nests its parts deeper than {MAX_DEPTH}")
        if plan.transparent:
            present: list[tuple[SlotPlan, Any]] = [(plan.slots[0], value)]
        else:
            present = [(p, item) for p in plan.slots if (item := getattr(value, p.attribute)) is not None]
        children = [self._child(p.slot, item) for p, item in present]
        self._depth -= 1
        self._builder.StartObject(plan.width)
        for (slot_plan, item), child in zip(present, children, strict=True):
            self._field(slot_plan.slot, item, child)
        return int(self._builder.EndObject())

    def _count(self, items: int) -> None:
        self._items += items
        if self._items > MAX_ITEMS:
            raise NotEncodableError(f"the block has more than {MAX_ITEMS} parts")

    def _child(self, slot: Slot, item: Any) -> int:
        """Write what a field points to; 0 for what lies in the table itself."""
        if slot.vector:
            if slot.kind == "string":
                self._count(len(item))
            return self._vector([self._element(slot, element) for element in item])
        return self._element(slot, item)

    def _element(self, slot: Slot, item: Any) -> int:
        match slot.kind:
            case "string":
                return int(self._builder.CreateString(str(item)))
            case "bytes":
                return int(self._builder.CreateByteVector(item if isinstance(item, bytes) else item.to_bytes()))
            case "table":
                return self._table(slot.of, item)
            case "union":
                return self._table(type(item).__name__, item)
            case _:
                return 0

    def _vector(self, offsets: list[int]) -> int:
        self._builder.StartVector(_OFFSET_SIZE, len(offsets), _OFFSET_SIZE)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _field(self, slot: Slot, item: Any, child: int) -> None:
        match slot.kind:
            case "union":
                self._builder.PrependUint8Slot(slot.index, MEMBER_NUMBERS[slot.of][type(item).__name__], 0)
                self._builder.PrependUOffsetTRelativeSlot(slot.index + 1, child, 0)
            case "string" | "bytes" | "table":
                self._builder.PrependUOffsetTRelativeSlot(slot.index, child, 0)
            case "timestamp":
                self._timestamp(slot, item)
            case "enum":
                layout = ENUMS[slot.of]
                self._scalar(slot, layout.scalar, layout.members.index(item.value))
            case _:
                self._scalar(slot, slot.kind, item)

    def _scalar(self, slot: Slot, kind: str, item: int) -> None:
        if item or slot.optional:
            self._prepend[kind](item)
            self._builder.Slot(slot.index)

    def _timestamp(self, slot: Slot, moment: Timestamp) -> None:
        # Version 2 of the reference pushes this struct unaligned, unlike any stock builder; hashes depend on it.
        builder = self._builder
        builder.Prep(self._timestamp_alignment, _TIMESTAMP.size)
        builder.head -= _TIMESTAMP.size
        _TIMESTAMP.pack_into(builder.Bytes, builder.head, *moment.to_ordinal())
        builder.Slot(slot.index)
