"""What all messages share."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from odf_common.errors import MalformedBytesError


class Message(BaseModel):
    """A frozen value that crosses a topic: snake case in Python, camel case in JSON, unknown fields ignored."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )

    def to_json(self) -> bytes:
        """The message's bytes; absent stays absent."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """The message in these bytes; MalformedBytesError says what is wrong with them."""
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise MalformedBytesError(f"not a {cls.__name__}: {_problems(error)}") from error


def _problems(error: ValidationError) -> str:
    first, *more = error.errors(include_url=False, include_input=False)
    place = ".".join(map(str, first["loc"]))
    others = f", and {len(more)} more" if more else ""
    return f"{place}: {first['msg']}{others}" if place else f"{first['msg']}{others}"
