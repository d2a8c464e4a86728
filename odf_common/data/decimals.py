"""The decimals of Arrow that every reader knows: 128 bits wide, or 256 where those do not do."""

from __future__ import annotations

import pyarrow as pa

MAX_DECIMAL128 = 38  # digits
MAX_DECIMAL256 = 76


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The narrowest of them; ValueError for more digits than any has."""
    return pa.decimal128(precision, scale) if precision <= MAX_DECIMAL128 else pa.decimal256(precision, scale)
