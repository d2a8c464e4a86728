"""Why a JSON object does not fit its columns, in words for people."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import types

from odf_common.data.ddl import format_ddl
from odf_common.data.errors import UnsupportedTypeError
from odf_common.ingest.read import json_types
from odf_common.ingest.read.row_schema import RowSchema
from odf_common.ingest.read.texts import LAST_EVENT_TIME_MS

_SHOWN = 60  # characters
_MAX_FLOAT = 3.4028235677973366e38  # from here on, a FLOAT is infinite
_FIRST_SECOND = -62_135_596_800

_DAY = r"(?!000[01]|9999)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
_USUAL = (
    re.compile(
        _DAY + r"[Tt ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:0\d|1[0-3]):[0-5]\d)?", re.ASCII
    ),
    re.compile(_DAY, re.ASCII),
)
"""Timestamps and dates that need no closer look."""
_POSSIBLE = (
    re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII),
    re.compile(r"(\d{4}-\d\d-\d\d)", re.ASCII),
)
"""What alone can be one, if its day exists."""


def mismatch(record: Mapping[str, Any], schema: RowSchema) -> str | None:
    """The first column that certainly does not fit; None if all seem to."""
    for name, column in schema.columns:
        value = record.get(name)
        if name == schema.event_time and value is not None:
            reason = _event_time_mismatch(value, column, schema)
        else:
            reason = _mismatch(value, column, name)
        if reason is not None:
            return reason
    return None


def _mismatch(value: Any, column: pa.Field, path: str) -> str | None:
    if value is None:
        return None if column.nullable else f"column {path!r}: a value is required"
    data_type = column.type
    if types.is_struct(data_type) and isinstance(value, dict):
        inner = (_mismatch(value.get(member.name), member, f"{path}.{member.name}") for member in data_type)
        return next(filter(None, inner), None)
    if types.is_list(data_type) and isinstance(value, list):
        items = (_mismatch(item, data_type.value_field, f"{path}[{i}]") for i, item in enumerate(value))
        return next(filter(None, items), None)
    if _fits(value, data_type):
        return None
    return f"column {path!r}: expected {shown_type(data_type)}, found {_shown(value)}"


def _event_time_mismatch(value: Any, column: pa.Field, schema: RowSchema) -> str | None:
    if type(value) is int and not schema.is_declared and types.is_timestamp(column.type):
        fits, found = value >= _FIRST_SECOND, value * 1000
    else:
        fits, found = _fits(value, column.type), _sentinel(value, column.type)
    if not fits:
        return _mismatch(value, column, column.name) or f"column {column.name!r}: {value} seconds are before the year 1"
    if found < LAST_EVENT_TIME_MS:
        return None
    return f"column {column.name!r}: the year 9999 or later is no time of an event, found {_shown(value)}"


def _sentinel(value: Any, data_type: pa.DataType) -> int:
    """Milliseconds of a time that may be too late; 0 for most."""
    if not isinstance(value, str) or not value.startswith("999") or not _is_spelling(value, data_type):
        return 0
    found = json_types.converted(pa.array([value], pa.string()), data_type)
    milliseconds: int = found.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())[0].as_py()
    return milliseconds


def _fits(value: Any, data_type: pa.DataType) -> bool:
    if types.is_boolean(data_type):
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if types.is_integer(data_type):
        bits = data_type.bit_width - types.is_signed_integer(data_type)
        least = -(2**bits) if types.is_signed_integer(data_type) else 0
        return isinstance(value, int) and least <= value < 2**bits
    if types.is_floating(data_type):
        return isinstance(value, int | float) and abs(value) <= (_MAX_FLOAT if data_type.bit_width == 32 else math.inf)
    if types.is_decimal(data_type):
        if isinstance(value, int | float):
            # Equal: doubles are rounded, up to here.
            return bool(abs(value) <= 10 ** (data_type.precision - data_type.scale))
        return isinstance(value, str) and _is_decimal(value)
    if not isinstance(value, str) or types.is_nested(data_type):
        return False
    return types.is_string(data_type) or _is_spelling(value, data_type)


def _is_decimal(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False


def _is_spelling(text: str, data_type: pa.DataType) -> bool:
    if types.is_timestamp(data_type) or types.is_date(data_type):
        kind = int(types.is_date(data_type))
        if _USUAL[kind].fullmatch(text):
            return True
        possible = _POSSIBLE[kind].fullmatch(text)
        if possible is None or not _is_day(possible[1]):
            return False
    try:
        json_types.converted(pa.array([text], pa.string()), data_type)
    except (pa.ArrowException, ValueError, OverflowError):
        return False
    return True


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@functools.cache
def shown_type(data_type: pa.DataType) -> str:
    """A type in the words of DDL, where that has any."""
    try:
        return format_ddl(pa.schema([pa.field("x", data_type)]))[0].removeprefix("x ")
    except UnsupportedTypeError:
        return str(data_type)


def _shown(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    text = orjson.dumps(value).decode() if not isinstance(value, int) or abs(value) < 2**63 else str(value)
    return f"{names[type(value)]} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
