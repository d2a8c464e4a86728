"""Texts to times, dates and ids: strict, and vectorised. Whatever does not fit raises ValueError (ArrowInvalid is one).

A timestamp is RFC 3339, or the same without offset, which means UTC. Fraction digits beyond the column's unit are cut.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

TIMESTAMP = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)?$"
_TIME = r"^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?$"
_UUID = r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"

_DIGITS = {"ms": 3, "us": 6, "ns": 9}
_PER_SECOND = {unit: 10**digits for unit, digits in _DIGITS.items()}
_WHOLE = "2020-01-01T00:00:00Z"

_FIRST_DAY = -719_162  # 0001-01-01, in days since 1970
_END_DAY = 2_932_897  # 10000-01-01
_DAY = 86_400  # seconds

LAST_EVENT_TIME_MS = 253_370_764_800_000
"""9999-01-01: from there on an event time is a sentinel, and would move the watermark to the end of time."""


def timestamps(texts: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Timestamps in UTC, in milliseconds or finer, between the years 1 and 9999."""
    found = _plain(texts, _DIGITS[data_type.unit]).cast(data_type)
    if data_type.unit != "ns":  # in nanoseconds, Arrow reaches from 1677 to 2262 only, and says so
        _check_days(found, _DAY * _PER_SECOND[data_type.unit])
    return found


def dates(texts: pa.Array) -> pa.Array:
    """Days of the years 1 to 9999: `2020-01-31`."""
    found = texts.cast(pa.date32())
    _check_days(found.view(pa.int32()), 1)
    return found


def times(texts: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Times of day, in milliseconds or finer: `23:59:59.999`."""
    _check_pattern(texts, _TIME, "a time of day")
    digits = _DIGITS[data_type.unit]
    moments = pc.binary_join_element_wise("1970-01-01T", _cut(texts, digits), "Z", "")
    numbers = moments.cast(pa.timestamp(data_type.unit, "UTC")).cast(pa.int64())
    width = pa.int32() if data_type.bit_width == 32 else pa.int64()
    return numbers.cast(width).view(data_type)


def uuids(texts: pa.Array) -> pa.Array:
    """The 16 bytes of `123e4567-e89b-12d3-a456-426614174000`."""
    _check_pattern(texts, _UUID, "a UUID")
    digits = pc.fill_null(pc.replace_substring(texts, "-", ""), "0" * 32)
    data = bytes.fromhex("".join(digits.to_pylist()))
    found = pa.Array.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(data)])
    return pc.if_else(texts.is_valid(), found, pa.scalar(None, found.type)) if texts.null_count else found


def unix_seconds(numbers: pa.Array) -> pa.Array:
    """Timestamps in milliseconds of whole seconds since 1970."""
    limits = pc.min_max(numbers).as_py()
    if limits["min"] is not None and not (limits["min"] >= _FIRST_DAY * _DAY and limits["max"] < _END_DAY * _DAY):
        raise ValueError("seconds since 1970 lie outside the years 1 to 9999")
    return pc.multiply(numbers, 1000).cast(pa.timestamp("ms", "UTC"))


def check_years(moments: pa.Array) -> None:
    """ValueError unless days or timestamps lie in the years 1 to 9999."""
    if types.is_date32(moments.type):
        _check_days(moments.view(pa.int32()), 1)
    elif moments.type.unit != "ns":  # in nanoseconds, Arrow reaches from 1677 to 2262 only
        _check_days(moments, _DAY * _PER_SECOND[moments.type.unit])


def _plain(texts: pa.Array, digits: int) -> pa.Array:
    """The same moments in the one spelling that Arrow reads."""
    if _is_plain(texts, digits):
        return texts
    _check_pattern(texts, TIMESTAMP, "an RFC 3339 timestamp")
    texts = pc.ascii_upper(_cut(texts, digits))
    zoned = pc.match_substring_regex(texts, r"(Z|[+-]\d\d:\d\d)$")
    return pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))


def _is_plain(texts: pa.Array, digits: int) -> bool:
    """Whether all end in seconds, or in seconds and a fraction, and in `Z`: the common case, decided by lengths."""
    sizes = pc.min_max(pc.binary_length(texts)).as_py()
    if sizes["min"] is None:
        return True
    plain = sizes["min"] >= len(_WHOLE) and sizes["max"] <= len(_WHOLE) + digits + 1
    # Between these lengths and with Z, Arrow accepts nothing but what the pattern does.
    return bool(plain and pc.all(pc.ends_with(texts, "Z")).as_py())


def _cut(texts: pa.Array, digits: int) -> pa.Array:
    """With no more fraction digits than so many."""
    return pc.replace_substring_regex(texts, rf"(\.\d{{{digits}}})\d+", r"\1")


def _check_pattern(texts: pa.Array, pattern: str, what: str) -> None:
    if not pc.all(pc.match_substring_regex(texts, pattern)).as_py() and texts.null_count < len(texts):
        raise ValueError(f"not all texts are {what}")


def _check_days(values: pa.Array, per_day: int) -> None:
    width = np.int32 if per_day == 1 else np.int64
    limits = pc.min_max(values if per_day == 1 else values.cast(pa.int64())).as_py()
    if limits["min"] is None:
        return
    if not (_FIRST_DAY * per_day <= width(limits["min"]) and limits["max"] < _END_DAY * per_day):
        raise ValueError("outside the years 1 to 9999")
