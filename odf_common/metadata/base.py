"""What all metadata models share: text names, number ranges, tagged unions (ODF RFC-013)."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict, WithJsonSchema
from pydantic.alias_generators import to_camel

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
        # Building 70 validators takes longer than most commands run.
        defer_build=True,
    )

    def to_document(self) -> dict[str, Any]:
        """The form for YAML and JSON: absent stays absent, keys in the order of the facts."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


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
        if isinstance(value, dict) and isinstance(value.get("kind"), str):
            return value | {"kind": kinds.get(value["kind"], value["kind"])}
        return value

    return BeforeValidator(canonical)


def _bytes_of_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not standard base64 with padding: {error}") from error


Base64Bytes = Annotated[
    bytes,
    BeforeValidator(_bytes_of_base64),
    PlainSerializer(lambda data: base64.b64encode(data).decode("ascii"), when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64"}),
]


@dataclass(frozen=True, slots=True)
class ExtraAttributes:
    """A free map of attributes (`<domain>/<name>` → any JSON), kept and ignored where unknown (since ODF 0.37)."""

    entries: str
    """Compact JSON, keys sorted at every level: the form that blocks carry."""

    @classmethod
    def of(cls, attributes: dict[str, Any]) -> Self:
        """From plain values; ValueError when they are not JSON."""
        text = json.dumps(attributes, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
        return cls(text)

    @property
    def attributes(self) -> dict[str, Any]:
        """The map as plain values."""
        attributes = json.loads(self.entries, parse_constant=_refuse_constant)
        if not isinstance(attributes, dict):
            raise ValueError("extra attributes are not a JSON object")
        return attributes

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise ValueError("expected a map of attributes")
        try:
            return cls.of(value)
        except (TypeError, RecursionError) as error:
            raise ValueError(f"expected JSON values: {error}") from error

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


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
