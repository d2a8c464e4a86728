"""Buffers made to hurt whoever reads them: small to send, huge or endless to follow."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from flatbuffers import Builder

from odf_common.wire._generated.layout import UNIONS
from tests.unit.odf_common.wire.raw import (
    Child,
    Slots,
    event_block,
    finished,
    manifest,
    moment,
    schema_block,
    table,
    u8,
    vector,
)


def type_number(name: str) -> bytes:
    """The discriminator of a data type."""
    return u8(UNIONS["DataType"].index(f"DataType{name}") + 1)


def nested(kind: str, slots: Callable[[Builder, int], Slots], *, levels: int, bottom: Slots | None = None) -> bytes:
    """A column whose type contains itself, so many levels deep."""

    def value(builder: Builder) -> int:
        inner = table(builder, bottom or {})
        for _ in range(levels):
            inner = table(builder, slots(builder, inner))
        return inner

    return schema_block(type_number(kind), value)


def options(levels: int) -> bytes:
    return nested("Option", lambda builder, inner: {0: type_number("Option"), 1: inner}, levels=levels)


def lists(levels: int) -> bytes:
    return nested("List", lambda builder, inner: {0: type_number("List"), 1: inner}, levels=levels)


def doubling_maps(levels: int) -> bytes:
    """Key and value of every map are the same table: each level doubles the tree."""
    kind = type_number("Map")
    return nested("Map", lambda builder, inner: {0: kind, 1: inner, 2: kind, 3: inner}, levels=levels)


def repeating_structs(levels: int, *, times: int) -> bytes:
    """Every struct has the same member many times, and that member is such a struct."""

    def struct_of(builder: Builder, inner: int) -> Slots:
        name = int(builder.CreateString(""))
        member = table(builder, {0: name, 1: type_number("Struct"), 2: inner})
        return {0: vector(builder, [member] * times)}

    return nested("Struct", struct_of, levels=levels)


def shared_keyword(times: int, *, size: int) -> bytes:
    """One long keyword, listed many times."""

    def slots(builder: Builder) -> Slots:
        text = int(builder.CreateString("x" * size))
        return {1: vector(builder, [text] * times)}

    return event_block("SetInfo", slots)


def shared_columns(times: int, extra: str = "{}", more: Slots | None = None) -> bytes:
    """One column, listed many times."""

    def slots(builder: Builder) -> Slots:
        attributes = table(builder, {0: int(builder.CreateString(extra))})
        name, kind = int(builder.CreateString("a")), table(builder, {})
        column = table(builder, {0: name, 1: type_number("Bool"), 2: kind, 3: attributes, **(more or {})})
        return {1: table(builder, {0: vector(builder, [column] * times)})}

    return event_block("SetDataSchema", slots)


def shared_inputs(times: int) -> bytes:
    """One input of a transaction, listed many times."""

    def slots(builder: Builder) -> Slots:
        consumed = table(builder, {0: int(builder.CreateByteVector(bytes.fromhex("ed01") + bytes(32)))})
        return {0: vector(builder, [consumed] * times)}

    return event_block("ExecuteTransform", slots)


def extra(entries: str) -> bytes:
    """Extra attributes with this text."""
    return event_block("AddData", lambda builder: {6: table(builder, {0: int(builder.CreateString(entries))})})


def dataset_ref(text: str) -> bytes:
    """A transform of the dataset that is called so."""

    def slots(builder: Builder) -> Slots:
        source = table(builder, {0: int(builder.CreateString(text))})
        return {0: vector(builder, [source]), 1: u8(1), 2: table(builder, {0: int(builder.CreateString("x"))})}

    return event_block("SetTransform", slots)


def hash_bytes(data: bytes) -> bytes:
    """An AddData with this as the hash of the previous checkpoint."""
    return event_block("AddData", lambda builder: {0: int(builder.CreateByteVector(data))})


def wide_vtable(width: int) -> Child:
    """A table whose vtable claims so many slots, all of them present."""

    def write(builder: Builder) -> int:
        return table(builder, {index: u8(1) for index in range(width)})

    return write


def root_table(vtable: Sequence[int], *, soffset: int | None = None, body: int = 16) -> bytes:
    """A content buffer that is one root table: `vtable` as it stands before it, `body` bytes of table after that."""
    words = struct.pack(f"<{len(vtable)}H", *vtable)
    root = 4 + len(words)
    offset = len(words) if soffset is None else soffset
    return struct.pack("<I", root) + words + struct.pack("<i", offset) + bytes(body - 4)


_DEEP = 100_000

BUFFERS: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "three bytes": lambda: b"\0\0\0",
    "zeros": lambda: bytes(1000),
    "ones": lambda: b"\xff" * 1000,
    "an endless manifest": lambda: manifest(manifest(manifest(b""))),
    "a content of zeros": lambda: manifest(bytes(1000)),
    "a root that points to itself": lambda: manifest(struct.pack("<I", 0) + bytes(100)),
    "a root that points behind the end": lambda: manifest(struct.pack("<I", 2**32 - 1) + bytes(100)),
    "a vtable before the beginning": lambda: manifest(root_table([14, 16], soffset=1000)),
    "a vtable behind the end": lambda: manifest(root_table([14, 16], soffset=-1000)),
    "a vtable at the greatest distance": lambda: manifest(root_table([14, 16], soffset=-(2**31))),
    "a vtable that is its table": lambda: manifest(root_table([14, 16], soffset=0)),
    **{
        f"a vtable of {size} bytes": lambda size=size: manifest(root_table([size, 16, 4]))
        for size in (0, 1, 2, 3, 5, 255, 1028, 1030, 65_534, 65_535)
    },
    **{f"a table of {size} bytes": lambda size=size: manifest(root_table([6, size, 4])) for size in (0, 3, 65_535)},
    "a slot behind its table": lambda: manifest(root_table([6, 16, 12])),
    "a slot far behind its table": lambda: manifest(root_table([6, 16, 65_535])),
    "a slot on the offset to the vtable": lambda: manifest(root_table([6, 20, 1], body=20)),
    "more slots than any table has": lambda: manifest(
        finished(lambda builder: table(builder, {0: moment(), **{index: u8(1) for index in range(5, 600)}}))
    ),
    "options in options": lambda: options(_DEEP // 10),
    "lists in lists": lambda: lists(_DEEP // 10),
    "maps that double at every level": lambda: doubling_maps(50),
    "structs of two, 50 levels": lambda: repeating_structs(50, times=2),
    "structs of a thousand, 10 levels": lambda: repeating_structs(10, times=1000),
    "structs of 50,000, 2 levels": lambda: repeating_structs(2, times=50_000),
    "a column 100,000 times": lambda: shared_columns(_DEEP),
    "a column 5,000 times with 100 KB of attributes": lambda: shared_columns(5000, '{"a":"' + "x" * 100_000 + '"}'),
    "a column 5,000 times with 500 unknown fields": lambda: shared_columns(
        5000, more={index: u8(1) for index in range(4, 504)}
    ),
    "a column 30,000 times with 10 unknown fields": lambda: shared_columns(
        30_000, more={index: u8(1) for index in range(4, 14)}
    ),
    "a keyword of 100 KB, 30,000 times": lambda: shared_keyword(30_000, size=100_000),
    "an empty keyword, 100,000 times": lambda: shared_keyword(_DEEP, size=0),
    "an input, 100,000 times": lambda: shared_inputs(_DEEP),
    "attributes: lists in lists": lambda: extra('{"a":' + "[" * _DEEP + "]" * _DEEP + "}"),
    "attributes: lists in lists, open": lambda: extra('{"a":' + "[" * _DEEP),
    "attributes: maps in maps": lambda: extra('{"a":' * _DEEP + "1" + "}" * _DEEP),
    "attributes: 300,000 empty lists": lambda: extra('{"a":[' + "[]," * 300_000 + "[]]}"),
    "attributes: 100,000 maps": lambda: extra('{"a":[' + '{"b":1},' * _DEEP + "{}]}"),
    "attributes: a number of a million digits": lambda: extra('{"a":' + "9" * 1_000_000 + "}"),
    "attributes: a fraction of a million digits": lambda: extra('{"a":0.' + "9" * 1_000_000 + "}"),
    "attributes: numbers of 4,300 digits": lambda: extra('{"a":[' + ("9" * 4300 + ",") * 100 + "0]}"),
    "attributes: a million escapes": lambda: extra('{"a":"' + "\\u00e9" * 150_000 + '"}'),
    "attributes: a lone surrogate": lambda: extra(r'{"a":"\udc00"}'),
    "attributes: not a number": lambda: extra('{"a":NaN}'),
    "a reference of a megabyte": lambda: dataset_ref("a." * 500_000),
    "a reference of many separators": lambda: dataset_ref("/" * 500_000),
    "a reference to a long identity": lambda: dataset_ref("did:odf:z" + "z" * 500_000),
    "a reference to an odd identity": lambda: dataset_ref("did:odf:z" + "z" * 500),
    "a reference that is a long address": lambda: dataset_ref("a" * 500_000 + "://"),
    "a hash of a megabyte": lambda: hash_bytes(b"\x16\x80\x80\x40" + bytes(1_000_000)),
    "a hash whose code never ends": lambda: hash_bytes(b"\xff" * 1_000_000),
    "an empty hash": lambda: hash_bytes(b""),
}
