"""A document that was read: plain values, and where in the text each of them stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from odf_common.text.errors import MAX_SHOWN_CHARACTERS, InvalidManifestError, Problem, shown

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
Path: TypeAlias = Sequence[str | int]

_WORD = re.compile(r"\w+(?:-\w+)*")


class Position(NamedTuple):
    """Line and column, both counted from 1; a column is one character wide, whatever its width on the screen."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and the name it goes by in messages, usually that of its file."""

    name: str
    content: str = field(repr=False)

    def position(self, index: int) -> Position:
        """Line and column of a character; lines end with LF, CR LF or CR."""
        content = self.content
        breaks = content.count("\n", 0, index) + content.count("\r", 0, index) - content.count("\r\n", 0, index)
        line_start = max(content.rfind("\n", 0, index), content.rfind("\r", 0, index)) + 1
        return Position(breaks + 1, index - line_start + 1)

    def problem(self, index: int, reason: str, *, path: Path = ()) -> Problem:
        """Something that is wrong with the value that starts at `index`."""
        line, column = self.position(index)
        return Problem(line=line, column=column, field=path_text(path), reason=reason)

    def error(self, index: int, reason: str, *, path: Path = ()) -> InvalidManifestError:
        """The error of a text that has this one problem."""
        return InvalidManifestError(self.name, [self.problem(index, reason, path=path)])


@dataclass(frozen=True, slots=True)
class Place:
    """Index of the first character of a value (of its key, in an object) and the places of what it holds."""

    index: int
    children: Mapping[str | int, Place] = field(default_factory=lambda: _NO_CHILDREN)


_NO_CHILDREN: Mapping[str | int, Place] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document: `value` is made of dict, list, str, int, float, bool and None only."""

    value: JsonValue
    text: SourceText
    root: Place = field(repr=False)

    @property
    def source(self) -> str:
        """The name of the text in messages."""
        return self.text.name

    def position_of(self, path: Path) -> Position:
        """Where the value is; of a path that leads nowhere, the last part that exists."""
        return self.text.position(self.follow(path)[0])

    def follow(self, path: Path) -> tuple[int, tuple[str | int, ...]]:
        """Character index of a value and the path that led there.

        Parts that name no child are skipped: pydantic puts union tags and names of validators between the fields.
        """
        place = self.root
        found = []
        for part in path:
            child = place.children.get(part)
            if child is not None:
                place = child
                found.append(part)
        return place.index, tuple(found)


def path_text(path: Path) -> str:
    """A path as people write it: `event.inputs[0].alias`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (
                part if _WORD.fullmatch(part) and len(part) <= MAX_SHOWN_CHARACTERS else shown(part)
            )
    return text
