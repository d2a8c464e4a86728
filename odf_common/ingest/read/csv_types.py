"""Texts of CSV cells to the types of their columns, and which of them do not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.data.errors import UnsupportedTypeError
from odf_common.ingest.read import texts as spelled

_INTEGER = r"^[+-]?\d+$"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_BOOLEAN = r"^(?i:true|false)$"

_INFERRED = (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("ms", "UTC"))

Convert = Callable[[pa.Array], pa.Array]
_Failure = (pa.ArrowException, ValueError, OverflowError)


def check_type(data_type: pa.DataType, column: str) -> None:
    """Raise UnsupportedTypeError for a type that a cell cannot hold."""
    if types.is_string(data_type) or isinstance(data_type, pa.UuidType) or types.is_temporal(data_type):
        return
    if not any(belongs(data_type) for belongs in (types.is_boolean, types.is_integer, types.is_decimal, _is_float)):
        raise UnsupportedTypeError(data_type, "CSV", column=column)


def cells(texts: pa.Array, data_type: pa.DataType, *, unix_seconds: bool = False) -> tuple[pa.Array, list[int]]:
    """The values, and the places of texts that are none; there the value is null."""
    convert = _converter(data_type, unix_seconds=unix_seconds)
    try:
        return convert(texts), []
    except _Failure:
        bad = np.flatnonzero(_misfits(texts, convert, _pattern(data_type, unix_seconds=unix_seconds)))
        mask = np.zeros(len(texts), np.bool_)
        mask[bad] = True
        kept = pc.if_else(pa.array(mask), pa.scalar(None, texts.type), texts)
        return convert(kept), bad.tolist()


def inferred_type(texts: pa.Array) -> pa.DataType | None:
    """The narrowest of BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP and STRING that holds all; None where all are null."""
    if texts.null_count == len(texts):
        return None
    return next((data_type for data_type in _INFERRED if _fits(texts, data_type)), pa.string())


def _fits(texts: pa.Array, data_type: pa.DataType) -> bool:
    try:
        _converter(data_type, unix_seconds=False)(texts)
    except _Failure:
        return False
    return True


def _converter(data_type: pa.DataType, *, unix_seconds: bool) -> Convert:
    if types.is_boolean(data_type):
        return lambda texts: _checked(texts, _BOOLEAN).cast(data_type)
    if types.is_integer(data_type):
        return lambda texts: pc.replace_substring_regex(_checked(texts, _INTEGER), r"^\+", "").cast(data_type)
    if types.is_decimal(data_type):
        return lambda texts: _checked(texts, _NUMBER).cast(data_type)
    if _is_float(data_type):
        return lambda texts: _finite(_checked(texts, _NUMBER).cast(data_type))
    if types.is_timestamp(data_type) and unix_seconds:
        return lambda texts: _moments(texts, data_type)
    if types.is_timestamp(data_type):
        return lambda texts: spelled.timestamps(texts, data_type)
    if types.is_date(data_type):
        return lambda texts: spelled.dates(texts).cast(data_type)
    if types.is_time(data_type):
        return lambda texts: spelled.times(texts, data_type)
    if isinstance(data_type, pa.UuidType):
        return spelled.uuids
    return lambda texts: texts


def _moments(texts: pa.Array, data_type: pa.DataType) -> pa.Array:
    """RFC 3339, or digits: Unix seconds."""
    digits = pc.fill_null(pc.match_substring_regex(texts, _INTEGER), False)
    if not pc.any(digits).as_py():
        return spelled.timestamps(texts, data_type)
    nothing = pa.scalar(None, texts.type)
    seconds = pc.if_else(digits, texts, nothing).cast(pa.int64())
    return pc.coalesce(
        spelled.unix_seconds(seconds).cast(data_type),
        spelled.timestamps(pc.if_else(digits, nothing, texts), data_type),
    )


def _misfits(texts: pa.Array, convert: Convert, pattern: str) -> npt.NDArray[np.bool_]:
    """Which texts cannot be converted: most do not look like it, the others are found by trying."""
    odd = pc.invert(pc.fill_null(pc.match_substring_regex(texts, pattern), True))
    found: npt.NDArray[np.bool_] = odd.to_numpy(zero_copy_only=False)
    return found | _failing(pc.if_else(odd, pa.scalar(None, texts.type), texts), convert)


def _failing(texts: pa.Array, convert: Convert) -> npt.NDArray[np.bool_]:
    try:
        convert(texts)
    except _Failure:
        if len(texts) == 1:
            return np.ones(1, np.bool_)
        middle = len(texts) // 2
        return np.concatenate([_failing(texts[:middle], convert), _failing(texts[middle:], convert)])
    return np.zeros(len(texts), np.bool_)


def _pattern(data_type: pa.DataType, *, unix_seconds: bool) -> str:
    """What all texts of a type match, among others."""
    if types.is_boolean(data_type):
        return _BOOLEAN
    if types.is_integer(data_type):
        return _INTEGER
    if _is_float(data_type) or types.is_decimal(data_type):
        return _NUMBER
    if types.is_timestamp(data_type):
        return f"{spelled.TIMESTAMP}|{_INTEGER}" if unix_seconds else spelled.TIMESTAMP
    return ""


def _checked(texts: pa.Array, pattern: str) -> pa.Array:
    if not pc.all(pc.match_substring_regex(texts, pattern)).as_py() and texts.null_count < len(texts):
        raise ValueError(f"not all texts match {pattern}")
    return texts


def _finite(values: pa.Array) -> pa.Array:
    if not pc.all(pc.is_finite(values)).as_py() and values.null_count < len(values):
        raise ValueError("a number is too large for its column")
    return values


def _is_float(data_type: pa.DataType) -> bool:
    return bool(types.is_float32(data_type) or types.is_float64(data_type))
