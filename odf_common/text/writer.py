"""Writes YAML in the style of the reference implementation, byte for byte, and JSON.

Whatever is written is read back as the same values by `odf_common.text.reader`, and by readers of YAML 1.1: texts that
either would take for something else are quoted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import yaml

from odf_common.text.scalars import is_plain_text

Writable: TypeAlias = "Mapping[str, Writable] | Sequence[Writable] | str | int | float | bool | None"
"""What has a form in JSON; keys keep their order."""

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_NEVER_FOLDED = 2**31 - 1  # characters, the most that libyaml counts to

# libyaml knows by itself when to fall back from a block or from single quotes to escapes between double quotes, except
# for the breaks of YAML 1.1 and for what it would write as they are but cannot read again.
_NEEDS_ESCAPES = re.compile(r"[\r\x85\u2028\u2029\ufeff]")
_SAFE_BLOCK = re.compile(r"[^ \t\n](?:.*[^\n])?\n?", re.DOTALL)

_YAML_1_1 = yaml.SafeLoader.yaml_implicit_resolvers
_YAML_1_1_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_YAML_1_1_BOOLEANS = frozenset("yYnN")
"""Booleans by the book, although PyYAML takes them for texts."""


def write_document(value: Writable) -> str:
    """One YAML document."""
    return write_documents([value])


def write_documents(values: Iterable[Writable]) -> str:
    """YAML documents, with `---` between them.

    Numbers that are not finite raise ValueError, and values that JSON does not know TypeError.
    """
    written = yaml.emit(_stream(values), Dumper=_DUMPER, width=_NEVER_FOLDED, allow_unicode=True)
    assert isinstance(written, str)
    return written


def write_json(value: Writable, *, indent: int | None = 2) -> str:
    """JSON text with the characters as they are; ValueError for numbers that are not finite."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"


def _stream(values: Iterable[Writable]) -> Iterator[yaml.Event]:
    yield yaml.StreamStartEvent()
    for value in values:
        yield yaml.DocumentStartEvent(explicit=False)
        yield from _events(value)
        yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _events(value: Writable) -> Iterator[yaml.Event]:
    match value:
        case str():
            yield _scalar(value, _style(value))
        case Mapping():
            yield from _object(value)
        case list() | tuple():
            yield from _list(value)
        case _:
            yield _scalar(_literal(value))


def _object(value: Mapping[str, Writable]) -> Iterator[yaml.Event]:
    yield yaml.MappingStartEvent(anchor=None, tag=None, implicit=True)
    for key, item in value.items():
        yield _scalar(key, _key_style(key))
        yield from _events(item)
    yield yaml.MappingEndEvent()


def _list(value: Sequence[Writable]) -> Iterator[yaml.Event]:
    yield yaml.SequenceStartEvent(anchor=None, tag=None, implicit=True)
    for item in value:
        yield from _events(item)
    yield yaml.SequenceEndEvent()


def _scalar(text: str, style: str | None = None) -> yaml.Event:
    return yaml.ScalarEvent(anchor=None, tag=None, implicit=(True, True), value=text, style=style)


def _literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return _real(value)
    raise TypeError(f"{type(value).__name__} has no form in YAML")


def _real(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no form in JSON")
    text = repr(value)
    # YAML 1.1 takes 1e+16 for a text.
    return text.replace("e", ".0e", 1) if "." not in text else text


def _style(text: str) -> str | None:
    """How to write a text; None leaves it to libyaml, which writes it plain where its characters allow that."""
    if "\n" in text and not _NEEDS_ESCAPES.search(text) and _SAFE_BLOCK.fullmatch(text):
        return "|"
    return _key_style(text)


def _key_style(text: str) -> str | None:
    if "\n" in text or _NEEDS_ESCAPES.search(text):
        return '"'
    return None if _stays_text(text) else "'"


def _stays_text(text: str) -> bool:
    """Whether every reader takes it for a text without quotes; date-times count as such, as in the reference."""
    if not is_plain_text(text) or text in _YAML_1_1_BOOLEANS:
        return False
    meanings = [tag for tag, pattern in _YAML_1_1.get(text[0], ()) if pattern.match(text)]
    return not meanings or meanings == [_YAML_1_1_TIMESTAMP]
