"""Logical types and Arrow types: DataSchema to pyarrow.Schema and back (ODF 0.39, native schema).

A column is nullable in Arrow exactly when its logical type is an Option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
from pyarrow import types

from odf_common.data import encoding_hints
from odf_common.data.decimals import decimal_type
from odf_common.data.errors import UnsupportedTypeError
from odf_common.metadata import data_schema as ds

_ARROW = "Arrow"
_LOGICAL = "the data schema"

_UNITS = {
    ds.TimeUnit.SECOND: "s",
    ds.TimeUnit.MILLISECOND: "ms",
    ds.TimeUnit.MICROSECOND: "us",
    ds.TimeUnit.NANOSECOND: "ns",
}
_TIME_UNITS = {unit: time_unit for time_unit, unit in _UNITS.items()}

_SIMPLE: tuple[tuple[type[Any], pa.DataType], ...] = (
    (ds.DataTypeBool, pa.bool_()),
    (ds.DataTypeInt8, pa.int8()),
    (ds.DataTypeInt16, pa.int16()),
    (ds.DataTypeInt32, pa.int32()),
    (ds.DataTypeInt64, pa.int64()),
    (ds.DataTypeUInt8, pa.uint8()),
    (ds.DataTypeUInt16, pa.uint16()),
    (ds.DataTypeUInt32, pa.uint32()),
    (ds.DataTypeUInt64, pa.uint64()),
    (ds.DataTypeFloat16, pa.float16()),
    (ds.DataTypeFloat32, pa.float32()),
    (ds.DataTypeFloat64, pa.float64()),
    (ds.DataTypeNull, pa.null()),
    (ds.DataTypeString, pa.string()),
    (ds.DataTypeDate, pa.date32()),
)
_ARROW_OF = dict(_SIMPLE)


def to_arrow(schema: ds.DataSchema) -> pa.Schema:
    """The Arrow columns of a logical schema; encoding hints in the extra attributes of a field are followed.

    Raises UnsupportedTypeError for types that Arrow cannot hold: an Option in an Option, more than 76 digits.
    """
    return pa.schema(_arrow_field(field, field.name) for field in schema.fields)


def from_arrow(schema: pa.Schema) -> ds.DataSchema:
    """The logical columns of an Arrow schema: layouts are forgotten, no hints are written.

    A timestamp without time zone has no own logical form: it gets no time zone, which readers take as UTC.
    Raises UnsupportedTypeError for dictionaries, unions and intervals.
    """
    return ds.DataSchema(fields=_logical_fields(schema, ""))


def _arrow_field(field: ds.DataField, column: str) -> pa.Field:
    try:
        arrow_type, nullable = _arrow_option(field.type, column)
        return pa.field(field.name, encoding_hints.applied(field.extra, arrow_type), nullable)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise UnsupportedTypeError(field.type, _ARROW, column=column) from error


def _arrow_option(data_type: ds.DataType, column: str) -> tuple[pa.DataType, bool]:
    """The Arrow type, and whether it may be null. Null itself may, with or without Option."""
    if isinstance(data_type, ds.DataTypeOption):
        return _arrow_type(data_type.inner, column), True
    return _arrow_type(data_type, column), isinstance(data_type, ds.DataTypeNull)


def _arrow_type(data_type: ds.DataType, column: str) -> pa.DataType:
    match data_type:
        case ds.DataTypeBinary(fixed_length=length):
            return pa.binary() if length is None else pa.binary(length)
        case ds.DataTypeDecimal(precision=precision, scale=scale):
            return decimal_type(precision, scale)
        case ds.DataTypeTime(unit=unit):
            return _arrow_time(_arrow_unit(unit))
        case ds.DataTypeTimestamp(unit=unit, timezone=timezone):
            return pa.timestamp(_arrow_unit(unit), "UTC" if timezone is None else timezone)
        case ds.DataTypeDuration(unit=unit):
            return pa.duration(_arrow_unit(unit))
        case ds.DataTypeList(item_type=item_type, fixed_length=length):
            item = pa.field("item", *_arrow_option(item_type, f"{column}.item"))
            return pa.list_(item) if length is None else pa.list_(item, length)
        case ds.DataTypeMap():
            return _arrow_map(data_type, column)
        case ds.DataTypeStruct(fields=fields):
            return pa.struct([_arrow_field(field, f"{column}.{field.name}") for field in fields])
    if type(data_type) in _ARROW_OF:
        return _ARROW_OF[type(data_type)]
    raise UnsupportedTypeError(data_type, _ARROW, column=column)


def _arrow_unit(unit: ds.TimeUnit | None) -> str:
    return _UNITS[ds.TimeUnit.MILLISECOND if unit is None else unit]


def _arrow_time(unit: str) -> pa.DataType:
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _arrow_map(data_type: ds.DataTypeMap, column: str) -> pa.DataType:
    keys, nullable = _arrow_option(data_type.key_type, f"{column}.keys")
    if nullable:
        raise UnsupportedTypeError(data_type, _ARROW, column=column)
    values = pa.field("values", *_arrow_option(data_type.value_type, f"{column}.values"))
    return pa.map_(pa.field("keys", keys, nullable=False), values, keys_sorted=bool(data_type.keys_sorted))


def _logical_fields(fields: Iterable[pa.Field], path: str) -> tuple[ds.DataField, ...]:
    return tuple(ds.DataField(name=field.name, type=_logical_field(field, path + field.name)) for field in fields)


def _logical_field(field: pa.Field, column: str) -> ds.DataType:
    inner = _logical_type(field.type, column)
    return ds.DataTypeOption(inner=inner) if field.nullable and not types.is_null(field.type) else inner


def _logical_type(arrow_type: pa.DataType, column: str) -> ds.DataType:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _logical_type(arrow_type.storage_type, column)
    for belongs, logical in _LOGICAL_OF:
        if belongs(arrow_type):
            return logical(arrow_type, column)
    for simple, its_arrow_type in _SIMPLE:
        if arrow_type == its_arrow_type:
            return simple()  # type: ignore[no-any-return]  # a table of classes
    raise UnsupportedTypeError(arrow_type, _LOGICAL, column=column)


def _logical_list(arrow_type: pa.DataType, column: str) -> ds.DataType:
    length = arrow_type.list_size if types.is_fixed_size_list(arrow_type) else None
    return ds.DataTypeList(item_type=_logical_field(arrow_type.value_field, f"{column}.item"), fixed_length=length)


def _logical_map(arrow_type: pa.DataType, column: str) -> ds.DataType:
    return ds.DataTypeMap(
        key_type=_logical_type(arrow_type.key_type, f"{column}.keys"),
        value_type=_logical_field(arrow_type.item_field, f"{column}.values"),
        keys_sorted=arrow_type.keys_sorted,
    )


def _is_any_list(arrow_type: pa.DataType) -> bool:
    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
        or types.is_list_view(arrow_type)
        or types.is_large_list_view(arrow_type)
    )


_LOGICAL_OF: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], ds.DataType]], ...] = (
    (types.is_large_string, lambda *_: ds.DataTypeString()),
    (types.is_string_view, lambda *_: ds.DataTypeString()),
    (types.is_binary, lambda *_: ds.DataTypeBinary()),
    (types.is_large_binary, lambda *_: ds.DataTypeBinary()),
    (types.is_binary_view, lambda *_: ds.DataTypeBinary()),
    (types.is_fixed_size_binary, lambda arrow, _: ds.DataTypeBinary(fixed_length=arrow.byte_width)),
    (types.is_date, lambda *_: ds.DataTypeDate()),
    (types.is_decimal, lambda arrow, _: ds.DataTypeDecimal(precision=arrow.precision, scale=arrow.scale)),
    (types.is_time, lambda arrow, _: ds.DataTypeTime(unit=_TIME_UNITS[arrow.unit])),
    (types.is_timestamp, lambda arrow, _: ds.DataTypeTimestamp(unit=_TIME_UNITS[arrow.unit], timezone=arrow.tz)),
    (types.is_duration, lambda arrow, _: ds.DataTypeDuration(unit=_TIME_UNITS[arrow.unit])),
    (types.is_run_end_encoded, lambda arrow, column: _logical_type(arrow.value_type, column)),
    (types.is_struct, lambda arrow, column: ds.DataTypeStruct(fields=_logical_fields(arrow, f"{column}."))),
    (types.is_map, _logical_map),
    (_is_any_list, _logical_list),
)
