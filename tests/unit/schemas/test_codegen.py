from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odf_common.wire.layout import EnumLayout, Slot
from schemas.codegen import layout_module, outputs


def generated(schema: str) -> dict[str, Any]:
    """What the module made of a schema defines."""
    names: dict[str, Any] = {}
    exec(layout_module(schema), names)
    return names


@pytest.mark.parametrize("path", outputs(), ids=lambda path: path.name)
def test_generated_files_are_current(path: Path) -> None:
    assert path.read_text() == outputs()[path], "run `make codegen`"


class TestLayout:
    def test_fields_take_slots_in_their_order(self) -> None:
        tables = generated("table A { one: string; two: long; }")["TABLES"]
        assert tables == {"A": (Slot(0, "one", "string"), Slot(1, "two", "long"))}

    def test_a_union_takes_two_slots(self) -> None:
        schema = "union U { A } table A { one: U; two: int; }"
        assert generated(schema)["TABLES"] == {"A": (Slot(0, "one", "union", "U"), Slot(2, "two", "int"))}
        assert generated(schema)["UNIONS"] == {"U": ("A",)}

    def test_numbers_that_may_be_null_are_optional(self) -> None:
        schema = "enum E: short { X, Y } table A { one: ulong = null; two: E = null; three: E; }"
        assert generated(schema)["TABLES"] == {
            "A": (
                Slot(0, "one", "ulong", optional=True),
                Slot(1, "two", "enum", "E", optional=True),
                Slot(2, "three", "enum", "E"),
            )
        }
        assert generated(schema)["ENUMS"] == {"E": EnumLayout("short", ("X", "Y"))}

    def test_bytes_are_no_vector_and_texts_and_tables_are(self) -> None:
        tables = generated("table A { one: [ubyte]; two: [string]; three: [A]; }")["TABLES"]
        assert tables == {
            "A": (
                Slot(0, "one", "bytes"),
                Slot(1, "two", "string", vector=True),
                Slot(2, "three", "table", "A", vector=True),
            )
        }

    def test_comments_say_nothing(self) -> None:
        schema = "// table B { one: int; }\ntable A { // two: int;\n  three: Timestamp; // four: int;\n}"
        assert generated(schema)["TABLES"] == {"A": (Slot(0, "three", "timestamp"),)}

    def test_a_table_may_be_empty(self) -> None:
        assert generated("table A { } table B { }")["TABLES"] == {"A": (), "B": ()}
