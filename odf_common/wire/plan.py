"""Which model stands for which table, and which attribute for which slot."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from odf_common.metadata import base, data_schema, events, fragments, manifests, sources, transforms
from odf_common.wire._generated.layout import ENUMS, TABLES, UNIONS
from odf_common.wire.layout import Slot, table_width

_MODULES = (manifests, events, fragments, sources, transforms, data_schema, base)


class SlotPlan(NamedTuple):
    """A slot, and the attribute of the model that it holds."""

    slot: Slot
    attribute: str


class TablePlan(NamedTuple):
    """A table, the model that it becomes, and its slots in order."""

    name: str
    model: Any
    slots: tuple[SlotPlan, ...]
    width: int
    """Number of slots; a union counts twice."""
    required: frozenset[str]
    """Attributes that must not be absent; the schema marks none."""
    transparent: bool
    """FlatBuffers has no vector of unions: such a table only wraps one and has no model of its own."""


def _attribute(slot_name: str) -> str:
    # pydantic keeps `schema` for itself.
    return "schema_" if slot_name == "schema" else slot_name


def _model(table: str) -> Any:
    return next((getattr(module, table) for module in _MODULES if hasattr(module, table)), None)


def _required(model: Any) -> frozenset[str]:
    if issubclass(model, base.Model):
        return frozenset(name for name, field in model.model_fields.items() if field.is_required())
    return frozenset(field.name for field in dataclasses.fields(model))


def _plan(table: str) -> TablePlan:
    slots = tuple(SlotPlan(slot, _attribute(slot.name)) for slot in TABLES[table])
    width = table_width(TABLES[table])
    if table.endswith("Wrapper"):
        return TablePlan(table, None, slots, width, frozenset({slots[0].attribute}), transparent=True)
    model = _model(table)
    return TablePlan(table, model, slots, width, _required(model), transparent=False)


PLANS: dict[str, TablePlan] = {table: _plan(table) for table in TABLES if table != "Manifest"}

ENUM_MODELS: dict[str, Any] = {name: _model(name) for name in ENUMS}

MEMBER_NUMBERS: dict[str, dict[str, int]] = {
    union: {member: number for number, member in enumerate(members, 1)} for union, members in UNIONS.items()
}
"""Union → table → discriminator; 0 stands for nothing."""
