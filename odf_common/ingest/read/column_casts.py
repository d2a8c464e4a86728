"""Typed columns to the types that they should have, as long as that loses nothing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import LogicalHasher
from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read import texts
from odf_common.ingest.read.json_types import stored_type
from odf_common.ingest.read.mismatch import shown_type

_SHOWN = 60  # characters
_EVENT_TIME = pa.timestamp("ms", "UTC")
_FAILURES = (pa.ArrowException, ValueError, OverflowError)


class MisfitError(Exception):
    """A column does not fit; `place` is the first row that does not, None if it is the column as a whole."""

    def __init__(self, reason: str, place: int | None = None) -> None:
        self.place = place
        super().__init__(reason)


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """A type without the ways in which Arrow can lay it out, and with times in UTC that Parquet can hold."""
    if types.is_dictionary(data_type):
        return plain_type(data_type.value_type)
    if isinstance(data_type, pa.BaseExtensionType):
        return plain_type(data_type.storage_type)
    if types.is_large_string(data_type) or types.is_string_view(data_type):
        return pa.string()
    if types.is_large_binary(data_type) or types.is_binary_view(data_type):
        return pa.binary()
    if types.is_timestamp(data_type):
        return _EVENT_TIME
    if types.is_date(data_type):
        return pa.date32()
    if types.is_struct(data_type):
        return pa.struct([member.with_type(plain_type(member.type)) for member in data_type])
    if types.is_list(data_type) or types.is_large_list(data_type):
        return pa.list_(data_type.value_field.with_type(plain_type(data_type.value_type)))
    return data_type


def storage_problem(name: str, data_type: pa.DataType) -> Problem | None:
    """Why a column of this type cannot be stored."""
    try:
        LogicalHasher(pa.schema([pa.field(name, data_type)]))
    except UnsupportedTypeError:
        reason = f"column {name!r} would hold {data_type}, which cannot be stored: leave it out, or declare the schema"
        return Problem(Code.WRONG_TYPE, reason)
    return None


def cast_column(array: pa.Array, column: pa.Field, *, is_time: bool = False) -> pa.Array:
    """The values in the type of the column; `is_time`: texts and Unix seconds are times, too. Raises MisfitError."""
    array = _plain(array)
    wanted = stored_type(column.type)
    if not column.nullable and array.null_count:
        raise MisfitError("a value is required", int(pc.index(array.is_null(), True).as_py()))
    convert = _of_time if is_time and types.is_timestamp(wanted) else _cast
    if not (convert is _of_time and _may_be_time(array.type)) and not _may_become(array.type, wanted):
        raise MisfitError(f"expected {shown_type(column.type)}, the Parquet file has {shown_type(array.type)}")
    try:
        return convert(array, wanted)
    except _FAILURES as error:
        place = _first_misfit(array, wanted, convert)
        raise MisfitError(f"expected {shown_type(column.type)}, found {_shown(array[place])}", place) from error


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value.cast(pa.string()))[:_SHOWN]
    except _FAILURES:
        return "what is none"


def _plain(array: pa.Array) -> pa.Array:
    while types.is_dictionary(array.type) or isinstance(array.type, pa.BaseExtensionType):
        array = array.dictionary_decode() if types.is_dictionary(array.type) else array.storage
    return array


def _may_be_time(data_type: pa.DataType) -> bool:
    return bool(types.is_integer(data_type) or types.is_string(data_type) or types.is_large_string(data_type))


def _may_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type are values of the other, or can be."""
    if found.equals(wanted) or types.is_null(found):
        return True
    if types.is_struct(found) and types.is_struct(wanted):
        names = {member.name: member.type for member in found}
        return all(member.name not in names or _may_become(names[member.name], member.type) for member in wanted)
    if _is_list(found) and types.is_list(wanted):
        return _may_become(found.value_type, wanted.value_type)
    if types.is_dictionary(found):
        return _may_become(found.value_type, wanted)
    return any(belongs(found) and belongs(wanted) for belongs in (_is_text, _is_bytes, _is_moment, types.is_time)) or (
        _is_number(found) and _is_number(wanted) and not (_is_decimal(found) != _is_decimal(wanted) and _real(found))
    )


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    array = _plain(array)
    if types.is_struct(array.type) and types.is_struct(wanted):
        found = {array.type.field(i).name: array.field(i) for i in range(array.type.num_fields)}
        members = [
            _cast(found[member.name], member.type) if member.name in found else pa.nulls(len(array), member.type)
            for member in wanted
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=list(wanted), mask=mask)
    if _is_list(array.type) and types.is_list(wanted):
        if array.offset:  # where nulls are marked, Arrow makes no list of offsets that begin later
            array = pa.concat_arrays([array, array[:0]])
        values = _cast(array.values, wanted.value_type)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets.cast(pa.int32()), values, type=wanted, mask=mask)
    if types.is_timestamp(array.type) and types.is_timestamp(wanted):
        return _within_years(_moments(array, wanted))
    if types.is_timestamp(array.type):
        return _exact(_moments(array, _EVENT_TIME).cast(wanted), array)
    cast = array.cast(wanted)
    if types.is_floating(wanted) and (types.is_floating(array.type) or types.is_decimal(array.type)):
        return _exact(cast, array)
    return _within_years(cast) if types.is_timestamp(wanted) or types.is_date32(wanted) else cast


def _moments(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """In UTC, which a time without zone is in; parts of the wanted unit are cut off."""
    if array.type.tz is None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    units = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
    if list(units).index(array.type.unit) > list(units).index(wanted.unit):
        array = pc.floor_temporal(array, unit=units[wanted.unit])
    return array.cast(wanted)


def _within_years(array: pa.Array) -> pa.Array:
    texts.check_years(array)
    return array


def _exact(cast: pa.Array, array: pa.Array) -> pa.Array:
    """The cast values, if casting them back gives the same."""
    back = cast.cast(array.type)
    same = pc.equal(back, array)
    if types.is_floating(array.type):
        same = pc.or_(same, pc.is_nan(array))
    if not pc.all(pc.fill_null(same, True)).as_py():
        raise ValueError("a value would be rounded")
    return cast


def _of_time(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if types.is_integer(array.type):
        return texts.unix_seconds(array.cast(pa.int64())).cast(wanted)
    if types.is_string(array.type) or types.is_large_string(array.type):
        return texts.timestamps(array.cast(pa.string()), wanted)
    return _cast(array, wanted)


def _first_misfit(array: pa.Array, wanted: pa.DataType, convert: object) -> int:
    """The first row that cannot be converted, by halves."""
    assert callable(convert)
    start, end = 0, len(array)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            convert(array[start:middle], wanted)
        except _FAILURES:
            end = middle
        else:
            start = middle
    return start


def _is_list(data_type: pa.DataType) -> bool:
    return bool(types.is_list(data_type) or types.is_large_list(data_type))


def _is_text(data_type: pa.DataType) -> bool:
    return bool(types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    variable = types.is_binary(data_type) or types.is_large_binary(data_type) or types.is_binary_view(data_type)
    return bool(variable or types.is_fixed_size_binary(data_type))


def _is_moment(data_type: pa.DataType) -> bool:
    return bool(types.is_timestamp(data_type) or types.is_date(data_type))


def _is_decimal(data_type: pa.DataType) -> bool:
    return bool(types.is_decimal(data_type))


def _real(data_type: pa.DataType) -> bool:
    return bool(types.is_floating(data_type))


def _is_number(data_type: pa.DataType) -> bool:
    return bool(types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type))
