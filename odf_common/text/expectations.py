"""What a pydantic model expects at a path: needed to tell people what they could have written instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema

from odf_common.text.document import Path
from odf_common.text.errors import shown

_LONGEST_GUESSED = 60
"""Characters; comparing two names costs the product of their lengths."""

# A class, although pydantic shows it to type checkers as an annotation.
_HIDDEN: Any = SkipJsonSchema


def models_at(model: type[BaseModel], path: Path) -> list[type[BaseModel]]:
    """The models that the value at a pydantic error's `loc` may be of; union tags in it choose among them."""
    candidates = [model]
    for part in path:
        annotations = [field for candidate in candidates for name, field in _fields(candidate) if name == part]
        if annotations:
            candidates = [found for annotation in annotations for found in _models_in(annotation)]
        else:
            candidates = [candidate for candidate in candidates if part in _tags(candidate)] or candidates
    return candidates


def field_names(models: Iterable[type[BaseModel]]) -> list[str]:
    """The fields of all the models as text spells them, each once."""
    return list(dict.fromkeys(name for model in models for name, _ in _fields(model)))


def tags_of(models: Iterable[type[BaseModel]], discriminator: str) -> list[str]:
    """The values that tell the models of a union apart."""
    annotations = [field for model in models for name, field in _fields(model) if name == discriminator]
    return [str(value) for annotation in annotations for value in _literals(annotation)]


def one_of(options: list[str]) -> str:
    """The choice as part of a sentence."""
    return "expected " + ("one of " if len(options) > 1 else "") + (", ".join(options) or "nothing")


def guess(wrong: str, options: list[str]) -> str:
    """The option that was probably meant, in brackets, or nothing."""
    close = difflib.get_close_matches(wrong, options, n=1) if len(wrong) <= _LONGEST_GUESSED else []
    return f" (did you mean {shown(close[0])}?)" if close else ""


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field.annotation


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names, without those that are kept out of the schema for people."""
    arguments = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif not any(isinstance(argument, _HIDDEN) for argument in arguments):
        for argument in arguments:
            yield from _models_in(argument)


def _tags(model: type[BaseModel]) -> set[object]:
    return {value for _, annotation in _fields(model) for value in _literals(annotation)}


def _literals(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()
