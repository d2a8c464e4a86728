"""What values have in common whose form in YAML and JSON is a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class TextValue:
    """A value that is read with `parse` and written with `str`; pydantic models may hold it as a field."""

    __slots__ = ()

    JSON_SCHEMA: ClassVar[dict[str, str]] = {"type": "string"}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form, or raise InvalidTextError."""
        raise NotImplementedError

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        raise ValueError(f"expected a text, got {type(value).__name__}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(cls.JSON_SCHEMA)


class BinaryTextValue(TextValue):
    """A text value that blocks carry as bytes."""

    __slots__ = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the binary form, or raise MalformedBytesError."""
        raise NotImplementedError

    def to_bytes(self) -> bytes:
        """The binary form."""
        raise NotImplementedError

    @classmethod
    def _validate(cls, value: object) -> Self:
        return cls.from_bytes(value) if isinstance(value, bytes) else super()._validate(value)
