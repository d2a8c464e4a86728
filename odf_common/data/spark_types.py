"""Arrow columns and Spark columns, the latter in the JSON of Spark's `StructType.fromJson` and `jsonValue`.

Types that Spark has not become those with which Spark itself reads them from Parquet: unsigned integers the next wider
signed one (UInt64 a DECIMAL(20, 0)), fixed-size binaries and UUIDs BINARY, date64 DATE. Times of day become TIME (Spark
4.1 and later). Half floats, durations, fixed-size lists, unions and decimals of more than 38 digits have no equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types

from odf_common.data.digest_types import is_bytes, is_text
from odf_common.data.errors import UnsupportedTypeError
from odf_common.errors import InvalidTextError

SparkType: TypeAlias = str | dict[str, Any]
"""A name such as `long` and `decimal(10,2)`, or an object with `type`."""

_MAX_DECIMAL = 38  # digits
_UINT64_DIGITS = 20

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,3})\s*,\s*(-?\d{1,3})\s*\)", re.ASCII)
_TIME = re.compile(r"time\(\s*[0-6]\s*\)", re.ASCII)
_TIME_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 6}

_SIMPLE: tuple[tuple[str, pa.DataType], ...] = (
    ("boolean", pa.bool_()),
    ("byte", pa.int8()),
    ("short", pa.int16()),
    ("integer", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("string", pa.string()),
    ("binary", pa.binary()),
    ("date", pa.date32()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestamp_ntz", pa.timestamp("us")),
    ("void", pa.null()),
)
_ARROW_OF: Mapping[str, pa.DataType] = dict(_SIMPLE)
_SPARK_OF: Mapping[pa.DataType, str] = {
    **{arrow_type: name for name, arrow_type in _SIMPLE},
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): f"decimal({_UINT64_DIGITS},0)",
    pa.date64(): "date",
}


def to_spark(schema: pa.Schema) -> dict[str, Any]:
    """The columns as Spark knows them; UnsupportedTypeError for types without an equal. Metadata is left out."""
    return _spark_struct(schema, "")


def from_spark(schema: Mapping[str, Any]) -> pa.Schema:
    """The Arrow columns that Spark exchanges for its own: timestamps in microseconds, in UTC.

    Raises InvalidTextError for JSON that is no Spark schema, UnsupportedTypeError for Spark's own types (intervals,
    variants, geometries).
    """
    struct = _arrow_type(dict(schema), "")
    if not types.is_struct(struct):
        raise _invalid(schema, "expected a struct")
    return pa.schema(list(struct))


def _spark_struct(fields: Any, path: str) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": _spark_type(field.type, path + field.name),
                "nullable": field.nullable,
                "metadata": {},
            }
            for field in fields
        ],
    }


def _spark_type(arrow_type: pa.DataType, column: str) -> SparkType:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _spark_type(arrow_type.storage_type, column)
    if arrow_type in _SPARK_OF:
        return _SPARK_OF[arrow_type]
    for belongs, spark in _FAMILIES:
        if belongs(arrow_type):
            return spark(arrow_type, column)
    raise UnsupportedTypeError(arrow_type, "Spark", column=column)


def _spark_decimal(arrow_type: pa.DataType, column: str) -> SparkType:
    if arrow_type.precision > _MAX_DECIMAL or not 0 <= arrow_type.scale <= arrow_type.precision:
        raise UnsupportedTypeError(arrow_type, "Spark", column=column)
    return f"decimal({arrow_type.precision},{arrow_type.scale})"


def _spark_array(arrow_type: pa.DataType, column: str) -> SparkType:
    item = arrow_type.value_field
    element = _spark_type(item.type, f"{column}.element")
    return {"type": "array", "elementType": element, "containsNull": item.nullable}


def _spark_map(arrow_type: pa.DataType, column: str) -> SparkType:
    return {
        "type": "map",
        "keyType": _spark_type(arrow_type.key_type, f"{column}.key"),
        "valueType": _spark_type(arrow_type.item_type, f"{column}.value"),
        "valueContainsNull": arrow_type.item_field.nullable,
    }


def _is_array(arrow_type: pa.DataType) -> bool:
    return bool(types.is_list(arrow_type) or types.is_large_list(arrow_type))


_FAMILIES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], SparkType]], ...] = (
    (is_text, lambda *_: "string"),
    (is_bytes, lambda *_: "binary"),
    (types.is_fixed_size_binary, lambda *_: "binary"),
    (types.is_decimal, _spark_decimal),
    (types.is_timestamp, lambda timestamp, _: "timestamp_ntz" if timestamp.tz is None else "timestamp"),
    (types.is_time, lambda time, _: f"time({_TIME_PRECISIONS[time.unit]})"),
    (_is_array, _spark_array),
    (types.is_map, _spark_map),
    (types.is_struct, lambda struct, column: _spark_struct(struct, f"{column}.")),
)


def _arrow_type(spark_type: object, column: str) -> pa.DataType:
    if isinstance(spark_type, str):
        return _arrow_atom(spark_type, column)
    match spark_type:
        case {"type": "struct", "fields": list(fields)}:
            return pa.struct([_arrow_field(field, column) for field in fields])
        case {"type": "array", "elementType": element, "containsNull": bool(nullable)}:
            return pa.list_(pa.field("element", _arrow_type(element, f"{column}.element"), nullable))
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": bool(nullable)}:
            values = pa.field("value", _arrow_type(value, f"{column}.value"), nullable)
            return pa.map_(_arrow_type(key, f"{column}.key"), values)
    raise _invalid(spark_type, "not a type that Spark writes")


def _arrow_atom(name: str, column: str) -> pa.DataType:
    if name in _ARROW_OF:
        return _ARROW_OF[name]
    if _TIME.fullmatch(name):
        return pa.time64("ns")
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None or not 1 <= int(decimal[1]) <= _MAX_DECIMAL:
        raise UnsupportedTypeError(name, "Arrow", column=column)
    return pa.decimal128(int(decimal[1]), int(decimal[2]))


def _arrow_field(field: object, path: str) -> pa.Field:
    match field:
        case {"name": str(name), "type": spark_type, "nullable": bool(nullable)}:
            column = f"{path}.{name}" if path else name
            return pa.field(name, _arrow_type(spark_type, column), nullable)
    raise _invalid(field, "expected an object with name, type and nullable")


def _invalid(value: object, reason: str) -> InvalidTextError:
    return InvalidTextError("Spark schema", str(value), position=0, reason=reason)
