"""Bytes → metadata blocks, from anyone: every offset is checked, depth and amount of work are bounded.

Received bytes are the truth. They are kept and hashed as they are; the model beside them is what we understand of them.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from odf_common.errors import MalformedBytesError
from odf_common.identity.multihash import sha3_256
from odf_common.metadata.events import UnknownEvent
from odf_common.metadata.manifests import MetadataBlock
from odf_common.timestamp import Timestamp
from odf_common.wire._generated.layout import ENUMS, UNIONS
from odf_common.wire.encoded_block import EncodedBlock
from odf_common.wire.envelope import open_envelope, unknown_field
from odf_common.wire.layout import Slot
from odf_common.wire.plan import ENUM_MODELS, PLANS
from odf_common.wire.reader import BufferReader, Table


class _UnknownMemberError(Exception):
    """A union member or enum value of a later version: the event around it is not understood."""


def decode_block(data: bytes) -> EncodedBlock:
    """Decode a block file. MalformedBytesError, or a subclass for versions that are not read."""
    envelope = open_envelope(data)
    decoder = _Decoder(BufferReader(envelope.content))
    block = decoder.block()
    return EncodedBlock(data, sha3_256(data), envelope.version, block, (*envelope.unknown, *decoder.unknown))


class _Decoder:
    """Turns tables into models, noting on the way what it does not know."""

    def __init__(self, reader: BufferReader) -> None:
        self._reader = reader
        # An ordered set: many tables may carry the same unknown field.
        self.unknown: dict[str, None] = {}

    def block(self) -> MetadataBlock:
        block: MetadataBlock = self._table("MetadataBlock", self._reader.root())
        return block

    def _table(self, name: str, table: Table) -> Any:
        plan = PLANS[name]
        fields = {p.attribute: item for p in plan.slots if (item := self._item(table, p.slot, name)) is not None}
        for index in table.present_beyond(plan.width):
            self.unknown[unknown_field(name, index)] = None
        if not plan.required <= fields.keys():
            absent = ", ".join(sorted(plan.required - fields.keys()))
            raise MalformedBytesError(f"{name}: absent, but required: {absent}")
        return fields[plan.slots[0].attribute] if plan.transparent else self._build(name, plan.model, fields)

    def _build(self, name: str, model: Any, fields: dict[str, Any]) -> Any:
        try:
            return model(**fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in (name, *first["loc"]))
            raise MalformedBytesError(f"{place}: {first['msg']}") from error
        except ValueError as error:
            raise MalformedBytesError(f"{name}: {error}") from error

    def _item(self, table: Table, slot: Slot, owner: str) -> Any:
        """The value of a slot, None where it is absent."""
        if slot.vector:
            return self._vector(table, slot)
        match slot.kind:
            case "string":
                return table.string(slot.index)
            case "bytes":
                return table.bytes(slot.index)
            case "table":
                child = table.table(slot.index)
                return None if child is None else self._table(slot.of, child)
            case "union":
                return self._event(table, slot) if slot.of == "MetadataEvent" else self._union(table, slot, owner)
            case "timestamp":
                parts = table.timestamp(slot.index)
                return None if parts is None else Timestamp.from_ordinal(*parts)
            case "enum":
                return self._enum(table, slot, owner)
            case _:
                return (
                    table.optional_scalar(slot.index, slot.kind)
                    if slot.optional
                    else table.scalar(slot.index, slot.kind)
                )

    def _vector(self, table: Table, slot: Slot) -> tuple[Any, ...] | None:
        if slot.kind == "string":
            return table.strings(slot.index)
        children = table.tables(slot.index)
        return None if children is None else tuple(self._table(slot.of, child) for child in children)

    def _event(self, block: Table, slot: Slot) -> Any:
        try:
            return self._union(block, slot, "MetadataBlock")
        except _UnknownMemberError as unknown:
            self.unknown[str(unknown)] = None
            return UnknownEvent(type_code=block.scalar(slot.index, "ubyte"))

    def _union(self, table: Table, slot: Slot, owner: str) -> Any:
        number = table.scalar(slot.index, "ubyte")
        members = UNIONS[slot.of]
        if number > len(members):
            raise _UnknownMemberError(f"{owner}.{slot.name}: unknown {slot.of} {number}")
        child = table.table(slot.index + 1)
        if number == 0 and child is None:
            return None
        if number == 0 or child is None:
            raise MalformedBytesError(f"{owner}.{slot.name}: a union needs both its type and its value")
        return self._table(members[number - 1], child)

    def _enum(self, table: Table, slot: Slot, owner: str) -> Any:
        layout = ENUMS[slot.of]
        number = table.optional_scalar(slot.index, layout.scalar)
        if number is None:
            if slot.optional:
                return None
            number = 0
        if not 0 <= number < len(layout.members):
            raise _UnknownMemberError(f"{owner}.{slot.name}: unknown {slot.of} {number}")
        return ENUM_MODELS[slot.of](layout.members[number])
