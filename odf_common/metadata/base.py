"""What all metadata models share: text names, number ranges, tagged unions (ODF RFC-013)."""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class Model(BaseModel):
    """A frozen value: snake case in Python, camel case in text, unknown properties refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        # Any limit makes pydantic look at the characters: a lone surrogate has no bytes and is refused.
        str_min_length=0,
        # Building 70 validators takes longer than most commands run.
        defer_build=True,
    )

    def to_document(self) -> dict[str, Any]:
        """The form for YAML and JSON: absent stays absent, keys in the order of the facts."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Kinds and versions have defaults for programs; in text they are always there."""
        json_schema = handler(schema)
        tags = [name for name, field in cls.model_fields.items() if get_origin(field.annotation) is Literal]
        if tags:
            definition = handler.resolve_ref_schema(json_schema)
            definition["required"] = tags + definition.get("required", [])
        return json_schema


U32 = Annotated[int, Strict(), Field(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Strict(), Field(ge=0, le=2**64 - 1)]
I32 = Annotated[int, Strict(), Field(ge=-(2**31), le=2**31 - 1)]
Bool = Annotated[bool, Strict()]


def _spellings(name: str) -> tuple[str, str, str]:
    """PascalCase, camelCase and all lower case: the three that readers accept of a variant's name."""
    return name, name[0].lower() + name[1:], name.lower()


class TextEnum(StrEnum):
    """An enum whose members are written in PascalCase and read in three spellings."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return next((member for member in cls if value in _spellings(member.value)), None)


def spelled(union: Any, *, short_form: bool = False) -> BeforeValidator:
    """Let a tagged union be read in three spellings; with `short_form`, a bare name stands for `{kind: name}`."""
    kinds = {
        spelling: kind
        for member in get_args(union) or (union,)
        for kind in (getattr(member, "__origin__", member).model_fields["kind"].default,)
        for spelling in _spellings(kind)
    }

    def canonical(value: Any) -> Any:
        if short_form and isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, dict):
            return value
        if "kind" not in value:
            # pydantic asks for the tag of many members only, not for that of a single one.
            raise PydanticKnownError("union_tag_not_found", {"discriminator": "'kind'"})
        kind = value["kind"]
        return value | {"kind": kinds.get(kind, kind)} if isinstance(kind, str) else value

    return BeforeValidator(canonical)


def renamed_schema(value: Any, *, kind: type, name: str) -> Any:
    """Read `schema`, where it is of the kind that older versions knew by that name, as the property `name`."""
    if not isinstance(value, dict) or not isinstance(value.get("schema"), kind) or value.get(name) is not None:
        return value
    return {key: item for key, item in value.items() if key != "schema"} | {name: value["schema"]}


def _bytes_of_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not standard base64 with padding: {error}") from error
    if _base64_of_bytes(data) != value:
        raise ValueError("not standard base64 with padding: its last character carries bits of no byte")
    return data


def _base64_of_bytes(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


Base64Bytes = Annotated[
    bytes,
    BeforeValidator(_bytes_of_base64),
    PlainSerializer(_base64_of_bytes, when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64"}),
]


MAX_EXTRA_DEPTH = 64
"""Maps and lists within each other in extra attributes."""

MAX_EXTRA_SIZE = 1024 * 1024  # characters
"""Lists of lists take some thirty times the memory of their text."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtraAttributes:
    """A free map of attributes (`<domain>/<name>` → any JSON), kept and ignored where unknown (since ODF 0.37).

    Equal when they say the same, however their texts are spaced and sorted.

    Any text of a JSON object is taken and kept as it is, so that a block of somebody else keeps its bytes. What cannot
    be written again in UTF-8 JSON (NaN, 1e999, a lone surrogate, bottomless nesting) is refused with ValueError.
    """

    entries: str
    """JSON text as blocks carry it. Made by `of` it is compact, with keys sorted at every level."""

    def __post_init__(self) -> None:
        if len(self.entries) > MAX_EXTRA_SIZE:
            raise ValueError(f"extra attributes are longer than {MAX_EXTRA_SIZE} characters")
        attributes = self.attributes
        if not isinstance(attributes, dict):
            raise ValueError("extra attributes are not a JSON object")
        _check_depth(attributes)
        if "\\u" in self.entries:
            # Escapes can spell half a character, which no later writing could.
            _canonical_json(attributes)

    @classmethod
    def of(cls, attributes: dict[str, Any]) -> Self:
        """From plain values; ValueError when they are not JSON."""
        extra = cls(_canonical_json(attributes))
        if extra.attributes != attributes:
            raise ValueError("extra attributes have keys that are not text, or values that JSON does not know")
        return extra

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExtraAttributes) and self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return hash(self._canonical())

    def _canonical(self) -> str:
        return _canonical_json(self.attributes)

    @property
    def attributes(self) -> dict[str, Any]:
        """The map as plain values."""
        try:
            attributes: dict[str, Any] = json.loads(
                self.entries, parse_constant=_refuse_number, parse_float=_finite_float
            )
        except RecursionError as error:
            raise ValueError(_TOO_DEEP) from error
        return attributes

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise ValueError("expected a map of attributes")
        return cls.of(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda extra: extra.attributes),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "object"}


_TOO_DEEP = f"extra attributes are nested deeper than {MAX_EXTRA_DEPTH}"


def _canonical_json(attributes: dict[str, Any]) -> str:
    try:
        text = json.dumps(attributes, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"expected JSON values: {error}") from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    text.encode("utf-8")
    return text


def _check_depth(attributes: dict[str, Any]) -> None:
    level: list[Any] = [attributes]
    for _ in range(MAX_EXTRA_DEPTH):
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _finite_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")
