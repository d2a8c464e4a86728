"""Which schema may follow which: columns may be added, never removed, renamed or retyped.

Types are compared logically (Utf8, LargeUtf8 and Utf8View are all String); order and attributes are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from odf_common.metadata.data_schema import (
    DataField,
    DataSchema,
    DataType,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeStruct,
    DataTypeTimestamp,
    TimeUnit,
)

_DEFAULT_UNIT = TimeUnit.MILLISECOND
_DEFAULT_TIMEZONE = "UTC"


def incompatibility(current: DataSchema, new: DataSchema, *, compare_optionality: bool) -> str | None:
    """Why `new` must not follow `current`; None when it may.

    Without `compare_optionality` a column may become nullable or required: bare Arrow schemas of the 0.36 era were
    never compared in that.
    """
    return _fields_incompatibility(current.fields, new.fields, "", compare_optionality)


def inconsistency(schema: DataSchema) -> str | None:
    """What makes a schema meaningless by itself; None when nothing does."""
    return _inconsistent_fields(schema.fields, "")


def misfit(schema: DataSchema, columns: DataSchema, *, numbered: Collection[str]) -> str | None:
    """Why columns of a slice cannot be read with a schema; None when they can.

    Each column of the schema must be there with its kind of type; units and sizes may be told apart by nothing that
    Parquet keeps, and columns beyond the schema are invisible. The columns `numbered` may be any integers: the
    specification's own types differ from those of its implementations.
    """
    found = {field.name: _required(field.type) for field in columns.fields}
    for field in schema.fields:
        if field.name not in found:
            return f"it has no column {field.name!r}, which the schema defines"
        wanted, actual = _required(field.type), found[field.name]
        if wanted.kind != actual.kind and field.name not in numbered:
            return f"its column {field.name!r} holds {_shown(actual)}, the schema says {_shown(wanted)}"
    return None


def _inconsistent_fields(fields: tuple[DataField, ...], path: str) -> str | None:
    counts = Counter(field.name for field in fields)
    repeated = (f"column {path + name!r} comes more than once" for name, count in counts.items() if count > 1)
    within = (_inconsistent_type(field.type, f"{path}{field.name}") for field in fields)
    return next(repeated, None) or next(filter(None, within), None)


def _inconsistent_type(data_type: DataType, name: str) -> str | None:
    match data_type:
        case DataTypeOption(inner=DataTypeOption()):
            return f"column {name!r} is an Option of an Option"
        case DataTypeOption(inner=inner):
            return _inconsistent_type(inner, name)
        case DataTypeStruct(fields=fields):
            return _inconsistent_fields(fields, f"{name}.")
        case DataTypeList(item_type=item_type):
            return _inconsistent_type(item_type, f"{name}[]")
        case DataTypeMap(key_type=key_type, value_type=value_type):
            return _inconsistent_type(key_type, f"{name}.key") or _inconsistent_type(value_type, f"{name}.value")
    return None


def _fields_incompatibility(
    current: tuple[DataField, ...], new: tuple[DataField, ...], path: str, compare_optionality: bool
) -> str | None:
    new_by_name = {field.name: field for field in new}
    for field in current:
        name = f"{path}{field.name}"
        if field.name not in new_by_name:
            return f"column {name!r} is missing; columns are never removed or renamed"
        reason = _type_incompatibility(field.type, new_by_name[field.name].type, name, compare_optionality)
        if reason is not None:
            return reason
    known = {field.name for field in current}
    for field in new:
        if field.name not in known and not isinstance(field.type, DataTypeOption):
            return f"new column {path}{field.name!r} is required; earlier rows have no value for it, make it nullable"
    return None


def _type_incompatibility(current: DataType, new: DataType, name: str, compare_optionality: bool) -> str | None:
    if compare_optionality and isinstance(current, DataTypeOption) != isinstance(new, DataTypeOption):
        change = "nullable" if isinstance(new, DataTypeOption) else "required"
        return f"column {name!r} became {change}"
    current, new = _required(current), _required(new)
    match current, new:
        case DataTypeStruct(), DataTypeStruct():
            return _fields_incompatibility(current.fields, new.fields, f"{name}.", compare_optionality)
        case DataTypeList(), DataTypeList() if current.fixed_length == new.fixed_length:
            return _type_incompatibility(current.item_type, new.item_type, f"{name}[]", compare_optionality)
        case DataTypeMap(), DataTypeMap():
            return _type_incompatibility(
                current.key_type, new.key_type, f"{name}.key", compare_optionality
            ) or _type_incompatibility(current.value_type, new.value_type, f"{name}.value", compare_optionality)
    if _spelled_out(current) != _spelled_out(new):
        return f"column {name!r} changed its type from {_shown(current)} to {_shown(new)}"
    return None


def _required(data_type: DataType) -> DataType:
    return data_type.inner if isinstance(data_type, DataTypeOption) else data_type


def _spelled_out(data_type: DataType) -> Any:
    """With the defaults filled in, so that absent and default compare equal."""
    if "unit" not in type(data_type).model_fields:
        return data_type
    # A timestamp of Arrow without any zone counts as UTC too: the native schema has no form of its own for it.
    defaults: dict[str, Any] = {"unit": getattr(data_type, "unit", None) or _DEFAULT_UNIT}
    if isinstance(data_type, DataTypeTimestamp):
        defaults["timezone"] = data_type.timezone or _DEFAULT_TIMEZONE
    return data_type.model_copy(update=defaults)


def _shown(data_type: DataType) -> str:
    document = data_type.to_document()
    kind = document.pop("kind")
    details = ", ".join(f"{key} {value}" for key, value in document.items())
    return f"{kind}({details})" if details else kind
