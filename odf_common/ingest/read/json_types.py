"""Column types on their way through JSON: what Arrow's parser is asked for, and what becomes of that."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.data.errors import UnsupportedTypeError
from odf_common.ingest.read import texts

_JSON = "JSON"


def wire_type(data_type: pa.DataType, column: str) -> pa.DataType:
    """The type to parse: texts for what JSON spells as text; UnsupportedTypeError for what it has no form for."""
    if _is_spelled(data_type):
        return pa.string()
    if types.is_struct(data_type):
        return pa.struct([member.with_type(wire_type(member.type, f"{column}.{member.name}")) for member in data_type])
    if types.is_list(data_type):
        item = data_type.value_field
        return pa.list_(item.with_type(wire_type(item.type, f"{column}.{item.name}")))
    if not _is_plain(data_type):
        raise UnsupportedTypeError(data_type, _JSON, column=column)
    return data_type


def stored_type(data_type: pa.DataType) -> pa.DataType:
    """The type of the rows: a UUID is its 16 bytes."""
    if isinstance(data_type, pa.UuidType):
        return data_type.storage_type
    if types.is_struct(data_type):
        return pa.struct([member.with_type(stored_type(member.type)) for member in data_type])
    if types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(stored_type(data_type.value_type)))
    return data_type


def converted(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Parsed values in the type of their column; ValueError when one of them does not fit."""
    if isinstance(data_type, pa.UuidType):
        return texts.uuids(array)
    if types.is_timestamp(data_type):
        return texts.unix_seconds(array) if types.is_integer(array.type) else texts.timestamps(array, data_type)
    if types.is_date(data_type):
        return texts.dates(array).cast(data_type)
    if types.is_time(data_type):
        return texts.times(array, data_type)
    if types.is_floating(data_type):
        return _finite(array)
    if types.is_struct(data_type):
        members = [converted(array.field(i), member.type) for i, member in enumerate(data_type)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=list(stored_type(data_type)), mask=mask)
    if types.is_list(data_type):
        # Not `flatten`: offsets count in `values`, which stay in place.
        values = converted(array.values, data_type.value_type)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, type=stored_type(data_type), mask=mask)
    return array


def _finite(array: pa.Array) -> pa.Array:
    if not pc.all(pc.is_finite(array)).as_py() and array.null_count < len(array):
        raise ValueError("a number is not finite or too large for its column")
    return array


def _is_spelled(data_type: pa.DataType) -> bool:
    temporal = types.is_timestamp(data_type) or types.is_date(data_type) or types.is_time(data_type)
    return bool(temporal or isinstance(data_type, pa.UuidType))


def _is_plain(data_type: pa.DataType) -> bool:
    return bool(
        types.is_boolean(data_type)
        or types.is_integer(data_type)
        or types.is_float32(data_type)
        or types.is_float64(data_type)
        or types.is_decimal128(data_type)
        or types.is_decimal256(data_type)
        or types.is_string(data_type)
    )
