"""Buffers made to hurt whoever reads them: small to send, huge or endless to follow."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial

from flatbuffers import Builder

from odf_common.wire._generated.layout import UNIONS
from tests.unit.odf_common.wire.raw import (
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


Level = Callable[[Builder, bytes, int], Slots]
"""Slots of a type around an inner one, of which the discriminator and the offset are given."""


def nested(kind: str, level: Level, *, levels: int) -> bytes:
    """A column whose type contains itself, so many levels deep, and a Bool at the bottom."""

    def value(builder: Builder) -> int:
        number, inner = type_number("Bool"), table(builder, {})
        for _ in range(levels):
            number, inner = type_number(kind), table(builder, level(builder, number, inner))
        return inner

    return schema_block(type_number(kind), value)


def options(levels: int) -> bytes:
    return nested("Option", lambda builder, kind, inner: {0: kind, 1: inner}, levels=levels)


def lists(levels: int) -> bytes:
    return nested("List", lambda builder, kind, inner: {0: kind, 1: inner}, levels=levels)


def doubling_maps(levels: int) -> bytes:
    """Key and value of every map are the same table: each level doubles the tree."""
    return nested("Map", lambda builder, kind, inner: {0: kind, 1: inner, 2: kind, 3: inner}, levels=levels)


def repeating_structs(levels: int, *, times: int) -> bytes:
    """Every struct has the same member many times, and that member is such a struct."""

    def level(builder: Builder, kind: bytes, inner: int) -> Slots:
        member = table(builder, {0: int(builder.CreateString("")), 1: kind, 2: inner})
        return {0: vector(builder, [member] * times)}

    return nested("Struct", level, levels=levels)


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


def content_table(vtable: Sequence[int], *, soffset: int | None = None, body: int = 16) -> bytes:
    """A block whose content is one table: `vtable` as it stands before it, then so many bytes of table."""
    words = struct.pack(f"<{len(vtable)}H", *vtable)
    root = 4 + len(words)
    offset = len(words) if soffset is None else soffset
    return manifest(struct.pack("<I", root) + words + struct.pack("<i", offset) + bytes(body - 4))


_MANY = 30_000

BUFFERS: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "three bytes": lambda: b"\0\0\0",
    "zeros": lambda: bytes(1000),
    "ones": lambda: b"\xff" * 1000,
    "an endless manifest": lambda: manifest(manifest(manifest(b""))),
    "a content of zeros": lambda: manifest(bytes(1000)),
    "a root that points to itself": lambda: manifest(struct.pack("<I", 0) + bytes(100)),
    "a root that points behind the end": lambda: manifest(struct.pack("<I", 2**32 - 1) + bytes(100)),
    "a vtable before the beginning": lambda: content_table([14, 16], soffset=1000),
    "a vtable behind the end": lambda: content_table([14, 16], soffset=-1000),
    "a vtable at the greatest distance": lambda: content_table([14, 16], soffset=-(2**31)),
    "a vtable that is its table": lambda: content_table([14, 16], soffset=0),
    **{
        f"a vtable of {size} bytes": partial(content_table, [size, 16, 4])
        for size in (0, 1, 2, 3, 5, 255, 1028, 1030, 65_534, 65_535)
    },
    **{f"a table of {size} bytes": partial(content_table, [6, size, 4]) for size in (0, 3, 65_535)},
    "a slot behind its table": lambda: content_table([6, 16, 12]),
    "a slot far behind its table": lambda: content_table([6, 16, 65_535]),
    "a slot on the offset to the vtable": lambda: content_table([6, 20, 1], body=20),
    "more slots than any table has": lambda: manifest(
        finished(lambda builder: table(builder, {0: moment(), **{index: u8(1) for index in range(5, 600)}}))
    ),
    "options in options": lambda: options(_MANY),
    "as many options as are read": lambda: options(59),
    "one option more than is read": lambda: options(60),
    "lists in lists": lambda: lists(_MANY),
    "maps that double at every level": lambda: doubling_maps(50),
    "structs of two, 25 levels": lambda: repeating_structs(25, times=2),
    "structs of a thousand, 10 levels": lambda: repeating_structs(10, times=1000),
    "structs of 10,000, 2 levels": lambda: repeating_structs(2, times=10_000),
    "a column, 30,000 times": lambda: shared_columns(_MANY),
    "a column with 100 KB of attributes, 5,000 times": lambda: shared_columns(5000, '{"a":"' + "x" * 100_000 + '"}'),
    "a column with 500 unknown fields, 5,000 times": lambda: shared_columns(
        5000, more={index: u8(1) for index in range(4, 504)}
    ),
    "a column with 10 unknown fields, 30,000 times": lambda: shared_columns(
        30_000, more={index: u8(1) for index in range(4, 14)}
    ),
    "a keyword of 100 KB, 30,000 times": lambda: shared_keyword(30_000, size=100_000),
    "an empty keyword, 30,000 times": lambda: shared_keyword(_MANY, size=0),
    "an input, 30,000 times": lambda: shared_inputs(_MANY),
    "attributes: lists in lists": lambda: extra('{"a":' + "[" * _MANY + "]" * _MANY + "}"),
    "attributes: lists in lists, open": lambda: extra('{"a":' + "[" * _MANY),
    "attributes: maps in maps": lambda: extra('{"a":' * _MANY + "1" + "}" * _MANY),
    "attributes: 100,000 empty lists": lambda: extra('{"a":[' + "[]," * 100_000 + "[]]}"),
    "attributes: a million empty lists": lambda: extra('{"a":[' + "[]," * 1_000_000 + "[]]}"),
    "attributes: 30,000 maps": lambda: extra('{"a":[' + '{"b":1},' * _MANY + "{}]}"),
    "attributes: a number of a million digits": lambda: extra('{"a":' + "9" * 1_000_000 + "}"),
    "attributes: a fraction of a million digits": lambda: extra('{"a":0.' + "9" * 1_000_000 + "}"),
    "attributes: numbers of 4,300 digits": lambda: extra('{"a":[' + ("9" * 4300 + ",") * 100 + "0]}"),
    "attributes: 150,000 escapes": lambda: extra('{"a":"' + "\\u00e9" * 150_000 + '"}'),
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

REGRESSIONS: dict[str, Callable[[], bytes]] = {
    "attributes without entries": lambda: event_block("AddData", lambda builder: {6: table(builder, {})}),
    "attributes that are no map": lambda: extra("[]"),
    "attributes with an infinite number": lambda: extra('{"a":1e999}'),
    "attributes that have no bytes": lambda: extra(r'{"a":"\ud800"}'),
    "attributes too deep to be written": lambda: extra('{"a":' + "[" * 300 + "]" * 300 + "}"),
    "a long text in many places": lambda: shared_columns(5000, '{"a":"' + "x" * 1_000_000 + '"}'),
}
"""What once came out as something else than MalformedBytesError, at once or when the block was used."""
