"""Type headers of the logical hash: what arrow-digest 0 feeds for a data type before any value."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

from odf_common.data.errors import UnsupportedTypeError

_TIME_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}


def u16(number: int) -> bytes:
    """Two bytes, little endian."""
    return struct.pack("<H", number)


def u64(number: int) -> bytes:
    """Eight bytes, little endian; negative numbers as two's complement."""
    return struct.pack("<Q", number & (2**64 - 1))


def type_header(data_type: pa.DataType, *, column: str = "") -> bytes:
    """The bytes that stand for `data_type`; UnsupportedTypeError for those that arrow-digest only reserves.

    Layouts of one logical type (views, large variants, dictionaries, extensions of a storage type) share a header.
    `column` is for the error alone.
    """
    data_type = logical_type(data_type)
    if is_list(data_type):
        return u16(11) + type_header(data_type.value_type, column=column)
    for belongs, header in _HEADERS:
        if belongs(data_type):
            return header(data_type)
    raise UnsupportedTypeError(data_type, "the logical hash", column=column)


def logical_type(data_type: pa.DataType) -> pa.DataType:
    """The type of the values themselves: without dictionary, without the name of an extension."""
    if isinstance(data_type, pa.BaseExtensionType):
        return logical_type(data_type.storage_type)
    if types.is_dictionary(data_type):
        return logical_type(data_type.value_type)
    return data_type


def is_bytes(data_type: pa.DataType) -> bool:
    """Byte strings of varying length, of any layout."""
    return bool(types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_binary_view(data_type))


def is_text(data_type: pa.DataType) -> bool:
    """UTF-8 of any layout."""
    return bool(types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type))


def is_view(data_type: pa.DataType) -> bool:
    """Byte strings and texts in the layout of views."""
    return bool(types.is_binary_view(data_type) or types.is_string_view(data_type))


def is_list(data_type: pa.DataType) -> bool:
    """Lists of any layout but the views, which arrow-digest does not know."""
    return bool(types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type))


def _integer(data_type: pa.DataType) -> bytes:
    return u16(1) + bytes([types.is_signed_integer(data_type)]) + u64(data_type.bit_width)


def _decimal(data_type: pa.DataType) -> bytes:
    return u16(6) + u64(data_type.bit_width) + u64(data_type.precision) + u64(data_type.scale)


def _time(data_type: pa.DataType) -> bytes:
    return u16(8) + u64(data_type.bit_width) + u16(_TIME_UNITS[data_type.unit])


def _timestamp(data_type: pa.DataType) -> bytes:
    header = u16(9) + u16(_TIME_UNITS[data_type.unit])
    if data_type.tz is None:
        return header + b"\0"
    zone: bytes = data_type.tz.encode()
    return header + u64(len(zone)) + zone


_HEADERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bytes]], ...] = (
    (types.is_null, lambda _: u16(0)),
    (types.is_integer, _integer),
    (types.is_floating, lambda data_type: u16(2) + u64(data_type.bit_width)),
    (is_bytes, lambda _: u16(3)),
    (types.is_fixed_size_binary, lambda _: u16(3)),
    (is_text, lambda _: u16(4)),
    (types.is_boolean, lambda _: u16(5)),
    (types.is_decimal, _decimal),
    (types.is_date32, lambda _: u16(7) + u64(32) + u16(0)),
    (types.is_date64, lambda _: u16(7) + u64(64) + u16(1)),
    (types.is_time, _time),
    (types.is_timestamp, _timestamp),
)
