"""DDL column strings of read steps (`population BIGINT`) to Arrow columns and back.

    columns = column ("," column)*
    column  = name type nullability
    name    = letters, digits and "_", or any text in double quotes (or backticks), the quote doubled inside
    type    = BOOLEAN | INT | BIGINT | … | DECIMAL(p, s) | TIMESTAMP(p) | TIME(p)
            | ARRAY<type nullability> | MAP<type, type nullability> | STRUCT<name (":")? type nullability, …>
    nullability = (NOT)? NULL, or nothing: nullable

Keywords are read in any case. A TIMESTAMP is in UTC whatever it says of time zones; p = 0 counts seconds, 3
milliseconds (the default), 6 microseconds, 9 nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
from pyarrow import types

from odf_common.data.ddl_tokens import DdlTokens, quoted
from odf_common.data.decimals import MAX_DECIMAL256, decimal_type
from odf_common.data.digest_types import is_bytes, is_text
from odf_common.data.errors import UnsupportedTypeError

MAX_DEPTH = 32
"""Types within types; deeper DDL is refused."""

_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_PRECISIONS = {unit: precision for precision, unit in _UNITS.items()}
_DEFAULT_PRECISION = 3

_INTEGERS: Mapping[str, tuple[pa.DataType, pa.DataType]] = {
    "TINYINT": (pa.int8(), pa.uint8()),
    "SMALLINT": (pa.int16(), pa.uint16()),
    "INT": (pa.int32(), pa.uint32()),
    "INTEGER": (pa.int32(), pa.uint32()),
    "BIGINT": (pa.int64(), pa.uint64()),
    "LONG": (pa.int64(), pa.uint64()),
}
"""Keyword to the signed type, and the one with UNSIGNED behind it."""

_SIMPLE: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "BOOL": pa.bool_(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "UUID": pa.uuid(),
    "STRING": pa.string(),
    "TEXT": pa.string(),
    "DATE": pa.date32(),
}


def parse_ddl(columns: Iterable[str]) -> pa.Schema:
    """The Arrow columns that DDL strings describe; InvalidTextError where one of them does not parse."""
    fields: dict[str, pa.Field] = {}
    for text in columns:
        tokens = DdlTokens(text)
        while True:
            position = tokens.position
            name = tokens.name()
            if name in fields:
                tokens.refuse(f"there are two columns {name!r}", position)
            fields[name] = _nullable(tokens, name, _type(tokens, 0))
            if not tokens.accept(","):
                break
        tokens.end()
    return pa.schema(fields.values())


def format_ddl(schema: pa.Schema) -> tuple[str, ...]:
    """One DDL string for each column, which `parse_ddl` reads back as the same logical type.

    Raises UnsupportedTypeError for what DDL has no words for: durations, fixed-size lists, half floats, timestamps in
    another zone than UTC.
    """
    return tuple(_format_field(column, " ", column.name) for column in schema)


def _nullable(tokens: DdlTokens, name: str, data_type: pa.DataType) -> pa.Field:
    if tokens.accept("NOT"):
        tokens.expect("NULL")
        return pa.field(name, data_type, nullable=False)
    tokens.accept("NULL")
    return pa.field(name, data_type)


def _type(tokens: DdlTokens, depth: int) -> pa.DataType:
    position = tokens.position
    if depth > MAX_DEPTH:
        tokens.refuse(f"more than {MAX_DEPTH} types within each other", position)
    keyword = tokens.keyword("a type")
    if keyword in _SIMPLE:
        return _SIMPLE[keyword]
    if keyword in _INTEGERS:
        signed, unsigned = _INTEGERS[keyword]
        return unsigned if tokens.accept("UNSIGNED") else signed
    if keyword in _PARAMETRISED:
        return _PARAMETRISED[keyword](tokens)
    if keyword in _NESTED:
        tokens.expect("<")
        nested = _NESTED[keyword](tokens, depth + 1)
        tokens.expect(">")
        return nested
    return tokens.refuse(f"there is no type {keyword}", position)


def _decimal(tokens: DdlTokens) -> pa.DataType:
    tokens.expect("(")
    precision = tokens.number(1, MAX_DECIMAL256)
    scale = tokens.number(-precision, precision) if tokens.accept(",") else 0
    tokens.expect(")")
    return decimal_type(precision, scale)


def _double(tokens: DdlTokens) -> pa.DataType:
    tokens.accept("PRECISION")
    return pa.float64()


def _characters(tokens: DdlTokens) -> pa.DataType:
    _length(tokens)
    return pa.string()


def _bytes(tokens: DdlTokens) -> pa.DataType:
    length = _length(tokens)
    return pa.binary() if length is None else pa.binary(length)


def _varying_bytes(tokens: DdlTokens) -> pa.DataType:
    _length(tokens)
    return pa.binary()


def _length(tokens: DdlTokens) -> int | None:
    if not tokens.accept("("):
        return None
    length = tokens.number(1, 2**31 - 1)
    tokens.expect(")")
    return length


def _time_unit(tokens: DdlTokens) -> str:
    if not tokens.accept("("):
        return _UNITS[_DEFAULT_PRECISION]
    position = tokens.position
    precision = tokens.number(0, 9)
    if precision not in _UNITS:
        tokens.refuse("the precision of a time is 0, 3, 6 or 9", position)
    tokens.expect(")")
    return _UNITS[precision]


def _time(tokens: DdlTokens) -> pa.DataType:
    unit = _time_unit(tokens)
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _timestamp(tokens: DdlTokens) -> pa.DataType:
    unit = _time_unit(tokens)
    if tokens.accept("WITH") or tokens.accept("WITHOUT"):
        for word in ("TIME", "ZONE"):
            tokens.expect(word)
    return pa.timestamp(unit, "UTC")


def _array(tokens: DdlTokens, depth: int) -> pa.DataType:
    return pa.list_(_nullable(tokens, "item", _type(tokens, depth)))


def _map(tokens: DdlTokens, depth: int) -> pa.DataType:
    key = _type(tokens, depth)
    tokens.expect(",")
    return pa.map_(key, _nullable(tokens, "value", _type(tokens, depth)))


def _struct(tokens: DdlTokens, depth: int) -> pa.DataType:
    members = []
    while True:
        name = tokens.name()
        tokens.accept(":")
        members.append(_nullable(tokens, name, _type(tokens, depth)))
        if not tokens.accept(","):
            return pa.struct(members)


_PARAMETRISED: Mapping[str, Callable[[DdlTokens], pa.DataType]] = {
    "DECIMAL": _decimal,
    "NUMERIC": _decimal,
    "DOUBLE": _double,
    "VARCHAR": _characters,
    "CHAR": _characters,
    "BINARY": _bytes,
    "VARBINARY": _varying_bytes,
    "BYTEA": lambda _: pa.binary(),
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMPTZ": _timestamp,
}

_NESTED: Mapping[str, Callable[[DdlTokens, int], pa.DataType]] = {"ARRAY": _array, "MAP": _map, "STRUCT": _struct}


def _format_field(field: pa.Field, separator: str, column: str) -> str:
    return f"{quoted(field.name)}{separator}{_format_item(field, column)}"


def _format_item(field: pa.Field, column: str) -> str:
    return _format_type(field.type, column) + ("" if field.nullable else " NOT NULL")


def _format_type(data_type: pa.DataType, column: str) -> str:
    for belongs, format_one in _FORMATS:
        if belongs(data_type):
            return format_one(data_type, column)
    raise UnsupportedTypeError(data_type, "DDL", column=column)


def _format_integer(data_type: pa.DataType, _: str) -> str:
    keywords = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}
    return keywords[data_type.bit_width] + ("" if types.is_signed_integer(data_type) else " UNSIGNED")


def _format_struct(data_type: pa.DataType, column: str) -> str:
    if data_type.num_fields == 0:
        raise UnsupportedTypeError(data_type, "DDL", column=column)
    members = (_format_field(member, ": ", f"{column}.{member.name}") for member in data_type)
    return f"STRUCT<{', '.join(members)}>"


def _format_map(data_type: pa.DataType, column: str) -> str:
    key = _format_type(data_type.key_type, f"{column}.key")
    return f"MAP<{key}, {_format_item(data_type.item_field, f'{column}.value')}>"


def _is_uuid(data_type: pa.DataType) -> bool:
    return isinstance(data_type, pa.UuidType)


def _is_utc(data_type: pa.DataType) -> bool:
    return bool(types.is_timestamp(data_type)) and data_type.tz == "UTC"


def _is_array(data_type: pa.DataType) -> bool:
    return bool(types.is_list(data_type) or types.is_large_list(data_type))


_FORMATS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], str]], ...] = (
    (types.is_boolean, lambda *_: "BOOLEAN"),
    (types.is_integer, _format_integer),
    (types.is_float32, lambda *_: "FLOAT"),
    (types.is_float64, lambda *_: "DOUBLE"),
    (types.is_decimal, lambda decimal, _: f"DECIMAL({decimal.precision}, {decimal.scale})"),
    (_is_uuid, lambda *_: "UUID"),
    (is_text, lambda *_: "STRING"),
    (is_bytes, lambda *_: "BINARY"),
    (types.is_fixed_size_binary, lambda binary, _: f"BINARY({binary.byte_width})"),
    (types.is_date, lambda *_: "DATE"),
    (types.is_time, lambda time, _: f"TIME({_PRECISIONS[time.unit]})"),
    (_is_utc, lambda timestamp, _: f"TIMESTAMP({_PRECISIONS[timestamp.unit]})"),
    (_is_array, lambda array, column: f"ARRAY<{_format_item(array.value_field, f'{column}.item')}>"),
    (types.is_map, _format_map),
    (types.is_struct, _format_struct),
)
