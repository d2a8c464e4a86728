from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from odf_common.data.arrow_types import from_arrow, to_arrow
from odf_common.data.encoding_hints import BUFFER_ENCODING, DATE_ENCODING, DECIMAL_ENCODING
from odf_common.data.errors import UnsupportedTypeError
from odf_common.metadata import data_schema as ds
from odf_common.metadata.base import ExtraAttributes
from tests.strategies import models
from tests.unit.odf_common.data.tables import batches, nested_types

OPTIONAL_TEXT = ds.DataTypeOption(inner=ds.DataTypeString())


def schema_of(data_type: ds.DataType, extra: dict[str, Any] | None = None) -> ds.DataSchema:
    attributes = None if extra is None else ExtraAttributes.of(extra)
    return ds.DataSchema(fields=(ds.DataField(name="x", type=data_type, extra=attributes),))


def arrow_of(data_type: ds.DataType, extra: dict[str, Any] | None = None) -> pa.Field:
    return to_arrow(schema_of(data_type, extra)).field("x")


def logical_of(arrow_type: pa.DataType, *, nullable: bool = False) -> ds.DataType:
    return from_arrow(pa.schema([pa.field("x", arrow_type, nullable)])).fields[0].type


SAME_BOTH_WAYS: list[tuple[ds.DataType, pa.DataType]] = [
    (ds.DataTypeBool(), pa.bool_()),
    (ds.DataTypeInt8(), pa.int8()),
    (ds.DataTypeInt64(), pa.int64()),
    (ds.DataTypeUInt16(), pa.uint16()),
    (ds.DataTypeUInt64(), pa.uint64()),
    (ds.DataTypeFloat16(), pa.float16()),
    (ds.DataTypeFloat64(), pa.float64()),
    (ds.DataTypeString(), pa.string()),
    (ds.DataTypeDate(), pa.date32()),
    (ds.DataTypeBinary(), pa.binary()),
    (ds.DataTypeBinary(fixed_length=5), pa.binary(5)),
    (ds.DataTypeDecimal(precision=38, scale=2), pa.decimal128(38, 2)),
    (ds.DataTypeDecimal(precision=39, scale=-2), pa.decimal256(39, -2)),
    (ds.DataTypeTime(unit=ds.TimeUnit.SECOND), pa.time32("s")),
    (ds.DataTypeTime(unit=ds.TimeUnit.NANOSECOND), pa.time64("ns")),
    (ds.DataTypeDuration(unit=ds.TimeUnit.MICROSECOND), pa.duration("us")),
    (ds.DataTypeTimestamp(unit=ds.TimeUnit.MILLISECOND, timezone="UTC"), pa.timestamp("ms", "UTC")),
    (ds.DataTypeTimestamp(unit=ds.TimeUnit.NANOSECOND, timezone="Europe/Paris"), pa.timestamp("ns", "Europe/Paris")),
    (ds.DataTypeList(item_type=OPTIONAL_TEXT), pa.list_(pa.string())),
    (ds.DataTypeList(item_type=ds.DataTypeInt8(), fixed_length=3), pa.list_(pa.field("item", pa.int8(), False), 3)),
    (
        ds.DataTypeMap(key_type=ds.DataTypeString(), value_type=OPTIONAL_TEXT, keys_sorted=True),
        pa.map_(pa.field("keys", pa.string(), False), pa.field("values", pa.string()), keys_sorted=True),
    ),
    (
        ds.DataTypeStruct(fields=(ds.DataField(name="a", type=OPTIONAL_TEXT),)),
        pa.struct([pa.field("a", pa.string())]),
    ),
]


@pytest.mark.parametrize(("logical", "arrow"), SAME_BOTH_WAYS, ids=lambda kind: str(kind)[:40])
def test_a_type_becomes_the_arrow_type_of_the_facts(logical: ds.DataType, arrow: pa.DataType) -> None:
    assert arrow_of(logical) == pa.field("x", arrow, nullable=False)


@pytest.mark.parametrize(("logical", "arrow"), SAME_BOTH_WAYS, ids=lambda kind: str(kind)[:40])
def test_an_arrow_type_becomes_the_type_of_the_facts(logical: ds.DataType, arrow: pa.DataType) -> None:
    assert logical_of(arrow) == logical


def test_an_option_is_a_nullable_column() -> None:
    assert arrow_of(OPTIONAL_TEXT) == pa.field("x", pa.string())
    assert logical_of(pa.string(), nullable=True) == OPTIONAL_TEXT


def test_null_is_nullable_without_option() -> None:
    assert arrow_of(ds.DataTypeNull()) == pa.field("x", pa.null())
    assert logical_of(pa.null(), nullable=True) == ds.DataTypeNull()
    assert logical_of(pa.list_(pa.null())) == ds.DataTypeList(item_type=ds.DataTypeNull())


@pytest.mark.parametrize(
    ("logical", "arrow"),
    [
        (ds.DataTypeTime(), pa.time32("ms")),
        (ds.DataTypeDuration(), pa.duration("ms")),
        (ds.DataTypeTimestamp(), pa.timestamp("ms", "UTC")),
        (ds.DataTypeMap(key_type=ds.DataTypeString(), value_type=ds.DataTypeString()), None),
    ],
)
def test_what_is_absent_takes_its_default(logical: ds.DataType, arrow: pa.DataType | None) -> None:
    found = arrow_of(logical).type
    assert found == arrow if arrow is not None else not found.keys_sorted


@pytest.mark.parametrize(
    ("arrow", "logical"),
    [
        (pa.large_string(), ds.DataTypeString()),
        (pa.string_view(), ds.DataTypeString()),
        (pa.large_binary(), ds.DataTypeBinary()),
        (pa.binary_view(), ds.DataTypeBinary()),
        (pa.date64(), ds.DataTypeDate()),
        (pa.decimal32(5, 2), ds.DataTypeDecimal(precision=5, scale=2)),
        (pa.decimal64(5, 2), ds.DataTypeDecimal(precision=5, scale=2)),
        (pa.decimal256(5, 2), ds.DataTypeDecimal(precision=5, scale=2)),
        (pa.large_list(pa.string()), ds.DataTypeList(item_type=OPTIONAL_TEXT)),
        (pa.list_view(pa.string()), ds.DataTypeList(item_type=OPTIONAL_TEXT)),
        (pa.large_list_view(pa.string()), ds.DataTypeList(item_type=OPTIONAL_TEXT)),
        (pa.run_end_encoded(pa.int32(), pa.string()), ds.DataTypeString()),
        (pa.timestamp("us"), ds.DataTypeTimestamp(unit=ds.TimeUnit.MICROSECOND)),
        (pa.uuid(), ds.DataTypeBinary(fixed_length=16)),
    ],
    ids=str,
)
def test_layouts_are_forgotten(arrow: pa.DataType, logical: ds.DataType) -> None:
    assert logical_of(arrow) == logical


@pytest.mark.parametrize(
    "arrow",
    [
        pa.dictionary(pa.int8(), pa.string()),
        pa.month_day_nano_interval(),
        pa.sparse_union([pa.field("a", pa.int8())]),
        pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))]),
    ],
    ids=str,
)
def test_an_arrow_type_without_logical_one_is_refused(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column 'x.*': the data schema has no form"):
        logical_of(arrow)


@pytest.mark.parametrize(
    "logical",
    [
        ds.DataTypeOption(inner=OPTIONAL_TEXT),
        ds.DataTypeList(item_type=ds.DataTypeOption(inner=OPTIONAL_TEXT)),
        ds.DataTypeMap(key_type=OPTIONAL_TEXT, value_type=OPTIONAL_TEXT),
        ds.DataTypeDecimal(precision=0, scale=0),
        ds.DataTypeDecimal(precision=77, scale=0),
        ds.DataTypeBinary(fixed_length=2**31),
        ds.DataTypeList(item_type=ds.DataTypeInt8(), fixed_length=2**64 - 1),
        ds.DataTypeStruct(fields=(ds.DataField(name="a", type=ds.DataTypeDecimal(precision=77, scale=0)),)),
    ],
    ids=lambda kind: str(kind)[:60],
)
def test_a_type_that_arrow_cannot_hold_is_refused(logical: ds.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column 'x(\..*)?': Arrow has no form"):
        arrow_of(logical)


@pytest.mark.parametrize(
    ("logical", "extra", "arrow"),
    [
        (ds.DataTypeString(), {BUFFER_ENCODING: {"kind": "View"}}, pa.string_view()),
        (OPTIONAL_TEXT, {BUFFER_ENCODING: {"kind": "View", "offsetBitWidth": 32}}, pa.string_view()),
        (ds.DataTypeString(), {BUFFER_ENCODING: {"kind": "Contiguous", "offsetBitWidth": 64}}, pa.large_string()),
        (ds.DataTypeString(), {BUFFER_ENCODING: {"kind": "Contiguous", "offsetBitWidth": 32}}, pa.string()),
        (ds.DataTypeBinary(), {BUFFER_ENCODING: {"kind": "View"}}, pa.binary_view()),
        (ds.DataTypeBinary(), {BUFFER_ENCODING: {"kind": "Contiguous", "offsetBitWidth": 64}}, pa.large_binary()),
        (
            ds.DataTypeList(item_type=OPTIONAL_TEXT),
            {BUFFER_ENCODING: {"kind": "Contiguous", "offsetBitWidth": 64}},
            pa.large_list(pa.string()),
        ),
        (
            ds.DataTypeList(item_type=OPTIONAL_TEXT),
            {BUFFER_ENCODING: {"kind": "View", "offsetBitWidth": 64}},
            pa.large_list_view(pa.string()),
        ),
        (ds.DataTypeList(item_type=OPTIONAL_TEXT), {BUFFER_ENCODING: {"kind": "View"}}, pa.list_view(pa.string())),
        (
            ds.DataTypeString(),
            {BUFFER_ENCODING: {"kind": "RunEnd", "runEndsBitWidth": 32}},
            pa.run_end_encoded(pa.int32(), pa.string()),
        ),
        (ds.DataTypeDate(), {DATE_ENCODING: {"unit": "Millisecond"}}, pa.date64()),
        (ds.DataTypeDate(), {DATE_ENCODING: {"unit": "Day"}}, pa.date32()),
        (ds.DataTypeDecimal(precision=5, scale=2), {DECIMAL_ENCODING: {"bitWidth": 32}}, pa.decimal32(5, 2)),
        (ds.DataTypeDecimal(precision=5, scale=2), {DECIMAL_ENCODING: {"bitWidth": 256}}, pa.decimal256(5, 2)),
    ],
)
def test_encoding_hints_choose_the_layout(logical: ds.DataType, extra: dict[str, Any], arrow: pa.DataType) -> None:
    assert arrow_of(logical, extra).type == arrow


@pytest.mark.parametrize(
    "extra",
    [
        {"example.org/note": 1},
        {BUFFER_ENCODING: "View"},
        {BUFFER_ENCODING: {"kind": "Spiral"}},
        {BUFFER_ENCODING: {"kind": "RunEnd", "runEndsBitWidth": [7]}},
        {DATE_ENCODING: {"unit": "Millisecond"}},
        {DECIMAL_ENCODING: {"bitWidth": {}}},
    ],
)
def test_hints_that_are_not_understood_are_passed_over(extra: dict[str, Any]) -> None:
    assert arrow_of(ds.DataTypeInt32(), extra).type == pa.int32()


def test_a_decimal_too_long_for_its_hint_keeps_its_width() -> None:
    hint = {DECIMAL_ENCODING: {"bitWidth": 32}}
    assert arrow_of(ds.DataTypeDecimal(precision=10, scale=2), hint).type == pa.decimal128(10, 2)


@given(models(ds.DataSchema))
def test_any_schema_becomes_arrow_or_is_refused(schema: ds.DataSchema) -> None:
    try:
        arrow = to_arrow(schema)
    except UnsupportedTypeError:
        return
    assert to_arrow(from_arrow(arrow)) == to_arrow(from_arrow(to_arrow(from_arrow(arrow))))


@given(batches(nested_types(), max_rows=0))
def test_the_logical_form_of_arrow_columns_is_stable(batch: pa.RecordBatch) -> None:
    logical = from_arrow(batch.schema)
    assert from_arrow(to_arrow(logical)) == from_arrow(to_arrow(from_arrow(to_arrow(logical))))
    assert to_arrow(logical).names == batch.schema.names
