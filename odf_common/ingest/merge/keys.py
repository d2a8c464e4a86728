"""The keys of rows: one binary value each, which indexes and states know rows by."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.ingest.errors import BadInputSchemaError


def merge_keys(table: pa.Table, primary_key: Sequence[str]) -> pa.Array:
    """One binary value for each row: equal exactly where the key columns are; null where any of them is null.

    The form is kept in indexes and never changes. Each column gives `<tag><length>:<value>`, one after another. Tags
    and values: `i` integers and `b` booleans (0, 1), as decimal digits; `s` texts in UTF-8; `x` bytes; `d` days since
    1970, `t<unit>` (s, ms, us, ns) times of day and `u<unit>` timestamps since 1970, as decimal digits; `n` decimals as
    Arrow writes them out; `f` floating point numbers as the decimal digits of the bits of a double, of which there is
    one zero only.
    """
    missing = [name for name in primary_key if name not in table.column_names]
    if missing:
        raise BadInputSchemaError(f"the primary key has the column {missing[0]!r}, the rows have none of that name")
    parts = [part for name in primary_key for part in _key_part(name, table[name].combine_chunks())]
    return pc.binary_join_element_wise(*parts, b"")


def check_key_type(name: str, data_type: pa.DataType) -> None:
    """Raise BadInputSchemaError for a column that cannot be part of a key."""
    _key_form(name, pa.array([], data_type))


def _key_part(name: str, column: pa.Array | pa.ChunkedArray) -> list[pa.Array | bytes]:
    array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    tag, form = _key_form(name, array)
    values = form.cast(pa.string()) if not (types.is_string(form.type) or types.is_binary(form.type)) else form
    data = values.cast(pa.binary())
    lengths = pc.binary_length(data).cast(pa.string()).cast(pa.binary())
    return [tag, lengths, b":", data]


def _key_form(name: str, array: pa.Array) -> tuple[bytes, pa.Array]:
    data_type = array.type
    if types.is_boolean(data_type):
        return b"b", array.cast(pa.int8())
    if types.is_integer(data_type):
        return b"i", array
    if types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type):
        return b"s", array.cast(pa.string())
    if types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_fixed_size_binary(data_type):
        return b"x", array.cast(pa.binary())
    if types.is_date(data_type):
        return b"d", array.cast(pa.date32()).view(pa.int32())
    if types.is_time(data_type):
        return b"t" + data_type.unit.encode(), array.view(pa.int32() if data_type.bit_width == 32 else pa.int64())
    if types.is_timestamp(data_type):
        return b"u" + data_type.unit.encode(), array.view(pa.int64())
    if types.is_decimal(data_type):
        return b"n", array.cast(pa.string())
    if types.is_float32(data_type) or types.is_float64(data_type):
        return b"f", pc.add(array.cast(pa.float64()), 0.0).view(pa.int64())
    raise BadInputSchemaError(f"column {name!r} of the primary key has the type {data_type}, which makes no key")
