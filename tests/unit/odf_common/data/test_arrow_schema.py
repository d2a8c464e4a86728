from __future__ import annotations

import base64
from contextlib import suppress

import flatbuffers
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.data.arrow_schema import decode_arrow_schema, encode_arrow_schema, logical_schema
from odf_common.errors import MalformedBytesError
from odf_common.metadata.data_schema import DataField, DataSchema, DataTypeBool, DataTypeInt64
from tests.unit.odf_common.data.tables import nested_types

OF_THE_REFERENCE = base64.b64decode(
    "DAAAAAgACAAAAAQACAAAAAQAAAACAAAAQAAAAAQAAADY////GAAAAAwAAAAAAAAGEAAAAAAAAAAEAAQABAAAAAEAAABiAAAAEAAUABAAAAAPAAQA"
    "AAAIABAAAAAYAAAAIAAAAAAAAAIcAAAACAAMAAQACwAIAAAAQAAAAAAAAAEAAAAAAQAAAGEAAAA="
)
"""a: Int64 not null, b: Boolean not null, as the reference writes them."""

WIDE = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("event_time", pa.timestamp("ms", "UTC"), metadata={"note": "when it happened"}),
        pa.field("é", pa.struct([pa.field("l", pa.list_(pa.decimal256(50, 3))), pa.field("v", pa.string_view())])),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
    ],
    metadata={"owner": "somebody"},
)


def test_a_schema_of_the_reference_is_read() -> None:
    expected = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.bool_(), nullable=False)])
    assert decode_arrow_schema(OF_THE_REFERENCE).equals(expected)


def test_a_schema_of_the_reference_has_a_logical_form() -> None:
    fields = (DataField(name="a", type=DataTypeInt64()), DataField(name="b", type=DataTypeBool()))
    assert logical_schema(OF_THE_REFERENCE) == DataSchema(fields=fields)


def test_a_schema_comes_back_with_its_metadata() -> None:
    assert decode_arrow_schema(encode_arrow_schema(WIDE)).equals(WIDE, check_metadata=True)


def test_a_schema_without_columns_comes_back() -> None:
    assert decode_arrow_schema(encode_arrow_schema(pa.schema([]))).equals(pa.schema([]))


@given(st.lists(st.tuples(st.text(max_size=5), nested_types(), st.booleans()), max_size=4))
def test_any_schema_comes_back(fields: list[tuple[str, pa.DataType, bool]]) -> None:
    schema = pa.schema([pa.field(*field) for field in fields])
    assert decode_arrow_schema(encode_arrow_schema(schema)).equals(schema)


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 7, b"\0" * 8, b"\xff" * 64, OF_THE_REFERENCE[:-4], OF_THE_REFERENCE[:40], bytes(1 << 25)]
)
def test_bytes_that_are_no_schema_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedBytesError):
        decode_arrow_schema(data)


def test_a_name_that_is_not_utf8_is_malformed() -> None:
    data = encode_arrow_schema(pa.schema([pa.field("outer", pa.struct([("name", pa.int8())]))]))
    with pytest.raises(MalformedBytesError, match="utf-8"):
        decode_arrow_schema(data.replace(b"name", b"na\xffe"))


def test_an_arrow_type_without_logical_one_is_malformed() -> None:
    with pytest.raises(MalformedBytesError, match="column 'd'"):
        logical_schema(encode_arrow_schema(pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))])))


def test_ten_thousand_nullable_columns_are_read() -> None:
    wide = pa.schema([(f"column {number}", pa.timestamp("ms", "UTC")) for number in range(10_000)])
    assert decode_arrow_schema(encode_arrow_schema(wide)).equals(wide)


def test_fields_that_share_a_table_are_malformed_before_they_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa.ipc, "read_schema", None)
    with pytest.raises(MalformedBytesError, match="more tables and elements"):
        decode_arrow_schema(with_shared_fields(500_000))


def test_names_that_are_shared_are_malformed_before_they_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa.ipc, "read_schema", None)
    with pytest.raises(MalformedBytesError, match="more text"):
        decode_arrow_schema(with_shared_fields(500, name="n" * 100_000))


def with_shared_fields(count: int, name: str = "b") -> bytes:
    """Fields that are all one table."""
    builder = flatbuffers.Builder()
    text = builder.CreateString(name)
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(0, text, 0)
    field = builder.EndObject()
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(field)
    fields = builder.EndVector()
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, fields, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


@given(
    base=st.sampled_from([OF_THE_REFERENCE, encode_arrow_schema(WIDE)]),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8),
    length=st.integers(0, 10_000),
)
def test_damaged_bytes_are_read_or_malformed(base: bytes, changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(base)
    for position, value in changes:
        data[position % len(data)] = value
    with suppress(MalformedBytesError):
        logical_schema(bytes(data[:length]))
