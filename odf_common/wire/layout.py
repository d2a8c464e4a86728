"""How the tables of metadata lie in FlatBuffers, as data: what `make codegen` reads out of the schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal[
    "bool", "short", "int", "uint", "long", "ulong", "string", "bytes", "timestamp", "enum", "table", "union"
]
"""What a slot holds. Scalars by their FlatBuffers names; `bytes` is [ubyte]."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One field of a table. A union takes two slots: `index` is its type's, the value follows."""

    index: int
    name: str
    kind: Kind
    of: str = ""
    """The enum, table or union meant."""
    vector: bool = False
    optional: bool = False
    """Scalars only: written whenever present, even when equal to 0."""


class EnumLayout(NamedTuple):
    """The scalar that holds an enum, and its members from 0."""

    scalar: Kind
    members: tuple[str, ...]


def table_width(slots: tuple[Slot, ...]) -> int:
    """Number of slots of a table; a union counts twice."""
    return max((slot.index + (2 if slot.kind == "union" else 1) for slot in slots), default=0)
