"""Our bytes, read with the accessors that the FlatBuffers compiler makes of the schema."""

from __future__ import annotations

import importlib
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given

from odf_common.metadata.manifests import MetadataBlock
from odf_common.timestamp import Timestamp
from odf_common.wire._generated.layout import ENUMS, UNIONS
from odf_common.wire.encode import encode_block
from odf_common.wire.layout import Slot
from odf_common.wire.plan import PLANS
from schemas.codegen import FLATBUFFERS_SCHEMA
from tests.strategies import blocks, examples
from tests.unit.odf_common.metadata.documents import full_blocks
from tests.unit.odf_common.wire.vectors import VECTORS, Vector

PACKAGE = "opendatafabric"

Generated = Callable[[str], Any]
"""The class that the compiler made for a table or a union."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    compiler = shutil.which("flatc")
    if compiler is None:
        pytest.skip("needs flatc, the FlatBuffers compiler, on PATH")
    folder = tmp_path_factory.mktemp("flatc")
    subprocess.run([compiler, "--python", "-o", folder, FLATBUFFERS_SCHEMA], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield lambda name: getattr(importlib.import_module(f"{PACKAGE}.{name}"), name)
    for module in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[module]


class Comparison:
    """Walks a model and the generated accessors of its table side by side."""

    def __init__(self, generated: Generated) -> None:
        self._generated = generated

    def block(self, written: MetadataBlock, *, version: int) -> None:
        manifest = self._generated("Manifest").GetRootAs(encode_block(written, manifest_version=version))
        assert manifest.Kind() == 0x400000
        assert manifest.Version() == version
        content = bytes(manifest.Content(index) for index in range(manifest.ContentLength()))
        self._table("MetadataBlock", written, self._generated("MetadataBlock").GetRootAs(content))

    def _table(self, name: str, value: Any, accessors: Any) -> None:
        plan = PLANS[name]
        for slot, attribute in plan.slots:
            self._slot(slot, value if plan.transparent else getattr(value, attribute), accessors)

    def _slot(self, slot: Slot, value: Any, accessors: Any) -> None:
        name = "".join(word.capitalize() for word in slot.name.split("_"))
        accessor = getattr(accessors, name)
        if slot.vector or slot.kind == "bytes":
            assert getattr(accessors, f"{name}IsNone")() == (value is None)
            elements = [accessor(index) for index in range(getattr(accessors, f"{name}Length")())]
            self._vector(slot, value or (), elements)
        elif slot.kind == "union":
            number = getattr(accessors, f"{name}Type")()
            assert number == (0 if value is None else UNIONS[slot.of].index(type(value).__name__) + 1)
            if value is not None:
                self._member(type(value).__name__, value, accessor())
        elif value is None:
            assert accessor() is None
        elif slot.kind == "table":
            self._table(slot.of, value, accessor())
        elif slot.kind == "string":
            assert accessor().decode() == str(value)
        else:
            assert self._number(slot, accessor()) == value

    def _vector(self, slot: Slot, value: Any, elements: list[Any]) -> None:
        if slot.kind == "bytes":
            assert bytes(elements) == (value.to_bytes() if hasattr(value, "to_bytes") else bytes(value))
        elif slot.kind == "string":
            assert tuple(element.decode() for element in elements) == value
        else:
            for item, element in zip(value, elements, strict=True):
                self._table(slot.of, item, element)

    def _member(self, name: str, value: Any, untyped: Any) -> None:
        accessors = self._generated(name)()
        accessors.Init(untyped.Bytes, untyped.Pos)
        self._table(name, value, accessors)

    def _number(self, slot: Slot, read: Any) -> Any:
        match slot.kind:
            case "enum":
                return ENUMS[slot.of].members[read]
            case "timestamp":
                parts = (read.Year(), read.Ordinal(), read.SecondsFromMidnight(), read.Nanoseconds())
                return Timestamp.from_ordinal(*parts)
            case _:
                return read


def test_the_compiler_takes_the_schema(generated: Generated) -> None:
    for table in PLANS:
        assert generated(table).__name__ == table


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_published_blocks_read_the_same_with_generated_code(vector: Vector, generated: Generated) -> None:
    Comparison(generated).block(vector.block, version=vector.manifest_version)


@pytest.mark.parametrize("name", full_blocks())
def test_every_field_reads_the_same_with_generated_code(name: str, generated: Generated) -> None:
    for version in (2, 3):
        Comparison(generated).block(full_blocks()[name], version=version)


def test_any_block_reads_the_same_with_generated_code(generated: Generated) -> None:
    @examples(40)
    @given(blocks())
    def reads_the_same(written: MetadataBlock) -> None:
        Comparison(generated).block(written, version=2)

    reads_the_same()


def test_generated_code_keeps_timestamps_as_one_struct(generated: Generated) -> None:
    assert generated("Timestamp").SizeOf() == struct.calcsize("<iHxxII")
