"""Columns and types of records that nobody described: from the values of the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types

from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import LogicalHasher
from odf_common.ingest.messages import Code, Problem

MAX_SAMPLES = 1000
"""Records whose values may widen the type of a new column."""

MAX_COLUMNS = 1000
"""Columns, members included, that records may bring; those that bring more cannot be read."""

_TOO_MANY = Problem(Code.TOO_MANY_COLUMNS, f"records may bring {MAX_COLUMNS} columns, this one brings more")
_INT64 = range(-(2**63), 2**63)


class _ContradictionError(Exception):
    """Two values of a column have no type in common."""


class Columns:
    """The columns known so far: the given ones, whose types stay, and those that records have brought."""

    def __init__(self, known: pa.Schema) -> None:
        self._known = {column.name: column for column in known}
        self._types: dict[str, pa.DataType] = {column.name: column.type for column in known}
        self._count = sum(map(_width, self._types.values()))
        self._samples = 0

    @property
    def schema(self) -> pa.Schema:
        """Those that have a type; all-null columns do not."""
        found = {name: _settled(data_type) for name, data_type in self._types.items()}
        return pa.schema(
            self._known[name].with_type(data_type) if name in self._known else pa.field(name, data_type)
            for name, data_type in found.items()
            if data_type is not None
        )

    def add(self, record: Mapping[str, Any]) -> Problem | None:
        """Take note of a record, unless it contradicts what is known; a problem that the parser will not find."""
        new = {name: value for name, value in record.items() if value is not None and self._brings(name, value)}
        if not new:
            return None
        widen = self._samples < MAX_SAMPLES
        try:
            merged = {name: self._merged(name, value, widen) for name, value in new.items()}
        except _ContradictionError:
            return None
        count = self._count + sum(_width(merged[name]) - _width(self._types.get(name)) for name in merged)
        if count > MAX_COLUMNS:
            return _TOO_MANY
        for name, data_type in merged.items():
            problem = _storage_problem(name, data_type) if types.is_nested(data_type) else None
            if problem is not None:
                return problem
        first = self._samples == 0 and not self._known
        self._samples += 1
        self._count = count
        # The first record's columns in the order of their names, later ones as they appear.
        self._types |= dict(sorted(merged.items())) if first else merged
        return None

    def _brings(self, name: str, value: Any) -> bool:
        known = self._types.get(name)
        return known is None or not _is_settled(known) or types.is_nested(known) or self._may_widen(name, known, value)

    def _may_widen(self, name: str, known: pa.DataType, value: Any) -> bool:
        return name not in self._known and types.is_int64(known) and type(value) is float

    def _merged(self, name: str, value: Any, widen: bool) -> pa.DataType:
        return _merged(self._types.get(name), type_of(value), widen=widen and name not in self._known)


def type_of(value: Any) -> pa.DataType:
    """The type of a JSON value; null where it does not tell."""
    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if value in _INT64 else pa.float64()
        case float():
            return pa.float64()
        case str():
            return pa.string()
        case list():
            item: pa.DataType = pa.null()
            for element in value:
                item = _merged(item, type_of(element), widen=True)
            return pa.list_(item)
        case dict():
            return pa.struct([(name, type_of(member)) for name, member in value.items()])
    return pa.null()


def _storage_problem(name: str, data_type: pa.DataType) -> Problem | None:
    settled = _settled(data_type)
    try:
        LogicalHasher(pa.schema([] if settled is None else [pa.field(name, settled)]))
    except UnsupportedTypeError:
        reason = f"column {name!r} would hold {settled}, which cannot be stored: leave it out, or declare the schema"
        return Problem(Code.WRONG_TYPE, reason)
    return None


def _merged(known: pa.DataType | None, found: pa.DataType, *, widen: bool) -> pa.DataType:
    """One type for both; _ContradictionError if there is none, and the record of the found one is at fault."""
    if known is None or types.is_null(known):
        return found
    if types.is_null(found) or known == found or (types.is_float64(known) and types.is_int64(found)):
        return known
    if types.is_struct(known) and types.is_struct(found):
        members = {member.name: member.type for member in known}
        for member in found:
            members[member.name] = _merged(members.get(member.name), member.type, widen=widen)
        return pa.struct(
            known.field(name).with_type(data_type) if known.get_field_index(name) >= 0 else pa.field(name, data_type)
            for name, data_type in members.items()
        )
    if types.is_list(known) and types.is_list(found):
        return pa.list_(known.value_field.with_type(_merged(known.value_type, found.value_type, widen=widen)))
    if widen and types.is_int64(known) and types.is_float64(found):
        return found
    raise _ContradictionError


def _is_settled(data_type: pa.DataType) -> bool:
    return not types.is_null(data_type) and not types.is_nested(data_type)


def _settled(data_type: pa.DataType) -> pa.DataType | None:
    """Without what has no type yet; None where nothing is left."""
    if types.is_null(data_type):
        return None
    if types.is_struct(data_type):
        members = [(member, _settled(member.type)) for member in data_type]
        kept = [member.with_type(found) for member, found in members if found is not None]
        return pa.struct(kept) if kept else None
    if types.is_list(data_type):
        item = _settled(data_type.value_type)
        return None if item is None else pa.list_(data_type.value_field.with_type(item))
    return data_type


def _width(data_type: pa.DataType | None) -> int:
    if data_type is None:
        return 0
    if types.is_struct(data_type):
        return 1 + sum(_width(member.type) for member in data_type)
    return 1 + _width(data_type.value_type) if types.is_list(data_type) else 1
