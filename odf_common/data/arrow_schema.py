"""Arrow schemas as SetDataSchema carries them: the bare `Schema` table of Arrow's own FlatBuffers."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from odf_common.data.arrow_types import from_arrow
from odf_common.data.errors import UnsupportedTypeError
from odf_common.errors import MalformedBytesError
from odf_common.wire.reader import BufferReader, Table

if TYPE_CHECKING:
    from odf_common.metadata.data_schema import DataSchema

_MAX_SIZE = 1 << 24  # bytes; the widest schemas seen have a hundredth of it
_PREFIX = struct.Struct("<Ii")
_CONTINUATION = 0xFFFFFFFF
_HEADER_SLOT = 2  # of Message: 0 version, 1 header_type, 2 header

# Slots of Arrow's Schema.fbs.
_SCHEMA_FIELDS = 1
_SCHEMA_METADATA = 2
_FIELD_NAME = 0
_FIELD_KIND = 2
_FIELD_TYPE = 3
_FIELD_CHILDREN = 5
_FIELD_METADATA = 6
_TIMESTAMP_KIND = 10
_TIMESTAMP_ZONE = 1
_KEY, _VALUE = 0, 1

# A Message (version V5, header type Schema) whose header lies behind it, in the `Schema` that is appended.
_VTABLE = struct.pack("<5H2x", 10, 12, 8, 10, 4)
_MESSAGE = struct.Struct("<I12siIhBx4x")
_TABLE_POSITION = 16
_HEADER_POSITION = 20


def encode_arrow_schema(schema: pa.Schema) -> bytes:
    """The bare `Schema` table: pyarrow's own message with the root moved from the message to its header."""
    message = bytearray(memoryview(schema.serialize())[_PREFIX.size :])
    position = _field_position(message, struct.unpack_from("<I", message)[0], _HEADER_SLOT)
    struct.pack_into("<I", message, 0, position + struct.unpack_from("<I", message, position)[0])
    return bytes(message)


def decode_arrow_schema(data: bytes) -> pa.Schema:
    """Read a bare `Schema` table; MalformedBytesError for bytes that are none, however they came about."""
    if not _PREFIX.size <= len(data) <= _MAX_SIZE:
        raise MalformedBytesError(f"an Arrow schema has {_PREFIX.size} to {_MAX_SIZE} bytes, not {len(data)}")
    header = _MESSAGE.size + struct.unpack_from("<I", data)[0]
    if header >= _MESSAGE.size + len(data):
        raise MalformedBytesError(f"the root of an Arrow schema of {len(data)} bytes lies behind its end")
    _pay_for_schema(data)
    message = _MESSAGE.pack(_TABLE_POSITION, _VTABLE, 12, header - _HEADER_POSITION, 4, 1) + data
    message += bytes(-len(message) % 8)
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(_PREFIX.pack(_CONTINUATION, len(message)) + message))
        _look_at_texts(schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MalformedBytesError(f"not an Arrow schema: {error}") from error
    return schema


@lru_cache(maxsize=2)  # several rules look at one block
def logical_schema(data: bytes) -> DataSchema:
    """The logical columns of a bare Arrow schema, in which schemas of any layout can be compared.

    Raises MalformedBytesError also for Arrow types that have no logical one.
    """
    try:
        return from_arrow(decode_arrow_schema(data))
    except UnsupportedTypeError as error:
        raise MalformedBytesError(f"an Arrow schema without logical form: {error}") from error


def _pay_for_schema(data: bytes) -> None:
    """Refuse what unfolds into more than its size allows: pyarrow makes a copy for each offset to a shared table."""
    schema = BufferReader(data).root()
    _pay_for_metadata(schema, _SCHEMA_METADATA)
    for field in schema.tables(_SCHEMA_FIELDS) or ():
        _pay_for_field(field)


def _pay_for_field(field: Table) -> None:
    field.bytes(_FIELD_NAME)
    if field.scalar(_FIELD_KIND, "ubyte") == _TIMESTAMP_KIND and (timestamp := field.table(_FIELD_TYPE)) is not None:
        timestamp.bytes(_TIMESTAMP_ZONE)
    _pay_for_metadata(field, _FIELD_METADATA)
    for child in field.tables(_FIELD_CHILDREN) or ():
        _pay_for_field(child)


def _pay_for_metadata(table: Table, slot: int) -> None:
    for pair in table.tables(slot) or ():
        pair.bytes(_KEY)
        pair.bytes(_VALUE)


def _look_at_texts(fields: Iterable[pa.Field]) -> None:
    """Names and time zones are decoded when they are looked at: UnicodeDecodeError, if that fails."""
    for field in fields:
        assert isinstance(field.name, str)
        if types.is_timestamp(field.type):
            assert isinstance(field.type.tz, str | None)
        _look_at_texts(field.type.field(i) for i in range(field.type.num_fields))


def _field_position(message: bytearray, table: int, slot: int) -> int:
    vtable = table - int(struct.unpack_from("<i", message, table)[0])
    return table + int(struct.unpack_from("<H", message, vtable + 4 + 2 * slot)[0])
