"""Encoding hints: attributes of a field that ask for one of several Arrow layouts of its logical type.

They never change what a value means, so a hint that is not understood is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types

from odf_common.data.decimals import MAX_DECIMAL128, MAX_DECIMAL256

if TYPE_CHECKING:
    from odf_common.metadata.base import ExtraAttributes

BUFFER_ENCODING = "arrow.apache.org/bufferEncoding"
"""`{kind: Contiguous | View, offsetBitWidth: 32 | 64}` or `{kind: RunEnd, runEndsBitWidth: 16 | 32 | 64}`."""

DATE_ENCODING = "arrow.apache.org/dateEncoding"
"""`{unit: Day | Millisecond}`."""

DECIMAL_ENCODING = "arrow.apache.org/decimalEncoding"
"""`{bitWidth: 32 | 64 | 128 | 256}`."""

_DECIMALS: Mapping[int, tuple[int, Callable[[int, int], pa.DataType]]] = {
    32: (9, pa.decimal32),
    64: (18, pa.decimal64),
    128: (MAX_DECIMAL128, pa.decimal128),
    256: (MAX_DECIMAL256, pa.decimal256),
}
"""Bit width to most digits and constructor."""

_RUN_ENDS: Mapping[int, pa.DataType] = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def applied(extra: ExtraAttributes | None, arrow_type: pa.DataType) -> pa.DataType:
    """The layout of `arrow_type` that the attributes of its field ask for."""
    attributes = {} if extra is None else extra.attributes
    for key, apply in _HINTS:
        hint = attributes.get(key)
        if isinstance(hint, dict):
            arrow_type = apply(arrow_type, hint)
    return arrow_type


def _dates(arrow_type: pa.DataType, hint: dict[str, Any]) -> pa.DataType:
    return pa.date64() if types.is_date(arrow_type) and hint.get("unit") == "Millisecond" else arrow_type


def _decimals(arrow_type: pa.DataType, hint: dict[str, Any]) -> pa.DataType:
    known = _DECIMALS.get(_bits(hint, "bitWidth"))
    if not types.is_decimal(arrow_type) or known is None:
        return arrow_type
    most_digits, decimal = known
    return decimal(arrow_type.precision, arrow_type.scale) if arrow_type.precision <= most_digits else arrow_type


def _buffers(arrow_type: pa.DataType, hint: dict[str, Any]) -> pa.DataType:
    match hint.get("kind"):
        case "RunEnd" if _bits(hint, "runEndsBitWidth") in _RUN_ENDS:
            return pa.run_end_encoded(_RUN_ENDS[_bits(hint, "runEndsBitWidth")], arrow_type)
        case "View":
            return _view(arrow_type, large=_bits(hint, "offsetBitWidth") == 64)
        case "Contiguous" if _bits(hint, "offsetBitWidth") == 64:
            return _large(arrow_type)
    return arrow_type


def _view(arrow_type: pa.DataType, *, large: bool) -> pa.DataType:
    if types.is_string(arrow_type):
        return pa.string_view()
    if types.is_binary(arrow_type):
        return pa.binary_view()
    if types.is_list(arrow_type):
        return pa.large_list_view(arrow_type.value_field) if large else pa.list_view(arrow_type.value_field)
    return arrow_type


def _large(arrow_type: pa.DataType) -> pa.DataType:
    if types.is_string(arrow_type):
        return pa.large_string()
    if types.is_binary(arrow_type):
        return pa.large_binary()
    if types.is_list(arrow_type):
        return pa.large_list(arrow_type.value_field)
    return arrow_type


def _bits(hint: dict[str, Any], key: str) -> int:
    """A width that the hint gives; 0 for none, or for JSON of another kind."""
    width = hint.get(key)
    return width if isinstance(width, int) else 0


_HINTS: tuple[tuple[str, Callable[[pa.DataType, dict[str, Any]], pa.DataType]], ...] = (
    (DATE_ENCODING, _dates),
    (DECIMAL_ENCODING, _decimals),
    (BUFFER_ENCODING, _buffers),
)
