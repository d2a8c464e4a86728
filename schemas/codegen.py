"""Write what is derived from the contracts: run by `make codegen`, checked by a test.

    python -m schemas.codegen

schemas/opendatafabric.fbs  →  odf_common/wire/_generated/layout.py
odf_common.metadata models  →  schemas/manifests/*.schema.json
odf_common.messages models  →  schemas/messages/*.schema.json (schemas/asyncapi.yaml refers to them)
services.gateway routes     →  schemas/openapi.json
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from odf_common.wire.layout import EnumLayout, Kind, Slot

if TYPE_CHECKING:
    from pydantic import BaseModel

ROOT = Path(__file__).resolve().parent.parent
FLATBUFFERS_SCHEMA = ROOT / "schemas" / "opendatafabric.fbs"
LAYOUT_MODULE = ROOT / "odf_common" / "wire" / "_generated" / "layout.py"
MANIFESTS = ROOT / "schemas" / "manifests"
MESSAGES = ROOT / "schemas" / "messages"
OPENAPI = ROOT / "schemas" / "openapi.json"

_DEFINITION = re.compile(r"(table|union|enum)\s+(\w+)\s*(?::\s*(\w+)\s*)?\{([^}]*)\}")
_FIELD = re.compile(r"(\w+)\s*:\s*(\[?)(\w+)\]?\s*(=\s*null)?\s*;")
_SCALARS: dict[str, Kind] = {name: name for name in ("bool", "int", "uint", "long", "ulong", "string")}


def layout_module(schema: str) -> str:
    """The Python source of the layout that a FlatBuffers schema describes."""
    definitions = _DEFINITION.findall(re.sub(r"//[^\n]*", "", schema))
    unions = {name: _members(body) for kind, name, _, body in definitions if kind == "union"}
    enums = {name: EnumLayout(scalar, _members(body)) for kind, name, scalar, body in definitions if kind == "enum"}
    tables = {
        name: tuple(_slots(body, unions=set(unions), enums=set(enums)))
        for kind, name, _, body in definitions
        if kind == "table"
    }
    return "\n".join(_render(tables, unions, enums))


def _members(body: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", body))


def _slots(body: str, *, unions: set[str], enums: set[str]) -> Iterator[Slot]:
    index = 0
    for name, bracket, type_name, null in _FIELD.findall(body):
        kind, of = _kind(type_name, unions=unions, enums=enums, vector=bool(bracket))
        yield Slot(index, name, kind, of, vector=bool(bracket) and kind != "bytes", optional=bool(null))
        index += 2 if kind == "union" else 1


def _kind(type_name: str, *, unions: set[str], enums: set[str], vector: bool) -> tuple[Kind, str]:
    if type_name == "ubyte" and vector:
        return "bytes", ""
    if type_name == "Timestamp":
        return "timestamp", ""
    if type_name in _SCALARS:
        return _SCALARS[type_name], ""
    if type_name in unions:
        return "union", type_name
    return ("enum" if type_name in enums else "table"), type_name


def _render(
    tables: dict[str, tuple[Slot, ...]], unions: dict[str, tuple[str, ...]], enums: dict[str, EnumLayout]
) -> Iterator[str]:
    yield '"""Made by `make codegen` from schemas/opendatafabric.fbs. Do not edit."""\n'
    yield "from odf_common.wire.layout import EnumLayout, Slot\n"
    yield "TABLES: dict[str, tuple[Slot, ...]] = {"
    for name, slots in tables.items():
        yield f"    {name!r}: ("
        yield from (f"        {slot!r}," for slot in slots)
        yield "    ),"
    yield "}\n"
    yield "UNIONS: dict[str, tuple[str, ...]] = {"
    for name, members in unions.items():
        yield f"    {name!r}: ("
        yield from (f"        {member!r}," for member in members)
        yield "    ),"
    yield "}\n"
    yield "ENUMS: dict[str, EnumLayout] = {"
    yield from (f"    {name!r}: {enum!r}," for name, enum in enums.items())
    yield "}\n"


def manifest_schemas() -> dict[str, str]:
    """File name → JSON Schema text of every manifest."""
    from odf_common.metadata.manifests import MANIFEST_MODELS

    return {f"{model.__name__}.schema.json": _schema(model) for model in MANIFEST_MODELS}


def message_models() -> tuple[type[BaseModel], ...]:
    """What crosses a topic, and what is kept in a block because of it."""
    from odf_common.messages.block_appended import BlockAppended
    from odf_common.messages.completion import Completion, Rejection
    from odf_common.messages.dead_letter import DeadLetterNote
    from odf_common.messages.dead_letter_retry import RetriedNote
    from odf_common.messages.kafka_offsets import KafkaOffsets
    from odf_common.messages.payload import PollNote, UploadedPayload

    about_blocks = (Completion, Rejection, BlockAppended, KafkaOffsets)
    return (*about_blocks, DeadLetterNote, RetriedNote, UploadedPayload, PollNote)


def message_schemas() -> dict[str, str]:
    """File name → JSON Schema text of every message."""
    return {f"{model.__name__}.schema.json": _schema(model) for model in message_models()}


def _schema(model: type[BaseModel]) -> str:
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(dialect | model.model_json_schema(by_alias=True), indent=2, ensure_ascii=False) + "\n"


def openapi_document() -> str:
    """The gateway's OpenAPI document."""
    from services.gateway.openapi import openapi

    return json.dumps(openapi(), indent=2, ensure_ascii=False) + "\n"


def outputs() -> dict[Path, str]:
    """Every generated file and what it should contain."""
    return (
        {LAYOUT_MODULE: layout_module(FLATBUFFERS_SCHEMA.read_text())}
        | {MANIFESTS / name: text for name, text in manifest_schemas().items()}
        | {MESSAGES / name: text for name, text in message_schemas().items()}
        | {OPENAPI: openapi_document()}
    )


def main() -> None:
    """Write all generated files. The layout goes first: the models' codec is made from it."""
    for path, text in outputs().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
