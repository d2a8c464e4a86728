"""Steps through strict JSON, which YAML readers do not quite understand: `\\ud83d\\ude00` is one character."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

from odf_common.text.document import SourceText
from odf_common.text.events import Event, EventKind

_BLANKS = re.compile(r"[ \t\n\r]*+")
_LITERAL = re.compile(r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+|true|false|null")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


class NotJsonError(ValueError):
    """The text leaves JSON's grammar at `index`."""

    def __init__(self, index: int, reason: str) -> None:
        self.index = index
        self.reason = reason
        super().__init__(reason)


def json_events(text: SourceText) -> Iterator[Event]:
    """The steps of the one value that a JSON text is; NotJsonError where it is none."""
    return _Scanner(text).events()


class _Scanner:
    """Reads the text from `_index` on; methods leave it behind what they read and the blanks that follow."""

    def __init__(self, text: SourceText) -> None:
        self._text = text
        self._content = text.content
        self._index = 0

    def events(self) -> Iterator[Event]:
        self._skip_blanks()
        yield from self._value()
        if self._index < len(self._content):
            self._refuse("nothing may follow the end of a JSON text")

    def _value(self) -> Iterator[Event]:
        match self._next():
            case "{":
                yield from self._object()
            case "[":
                yield from self._list()
            case '"':
                yield self._string()
            case _:
                yield self._literal()

    def _object(self) -> Iterator[Event]:
        yield Event(EventKind.OPEN_OBJECT, self._index)
        self._step()
        closed = self._take("}")
        while not closed:
            if self._next() != '"':
                self._refuse("expected a key between double quotes")
            yield self._string()
            if not self._take(":"):
                self._refuse("expected ':' after the key")
            yield from self._value()
            closed = self._ends("}")
        yield Event(EventKind.CLOSE, self._index)

    def _list(self) -> Iterator[Event]:
        yield Event(EventKind.OPEN_LIST, self._index)
        self._step()
        closed = self._take("]")
        while not closed:
            yield from self._value()
            closed = self._ends("]")
        yield Event(EventKind.CLOSE, self._index)

    def _ends(self, bracket: str) -> bool:
        """Whether the bracket closes here; otherwise a comma must follow."""
        if self._take(bracket):
            return True
        if not self._take(","):
            self._refuse(f"expected ',' or '{bracket}'")
        return False

    def _string(self) -> Event:
        start = self._index
        try:
            value, self._index = _DECODER.raw_decode(self._content, start)
        except json.JSONDecodeError as error:
            self._index = error.pos
            self._refuse(error.msg)
        if _LONE_SURROGATE.search(value):
            raise self._text.error(start, "a \\u escape names half a character (a lone surrogate)")
        self._skip_blanks()
        return Event(EventKind.SCALAR, start, value)

    def _literal(self) -> Event:
        start = self._index
        match = _LITERAL.match(self._content, start)
        if match is None:
            self._refuse("expected a value")
        self._index = match.end()
        self._skip_blanks()
        return Event(EventKind.SCALAR, start, match[0], plain=True)

    def _next(self) -> str:
        return self._content[self._index : self._index + 1]

    def _take(self, character: str) -> bool:
        found = self._next() == character
        if found:
            self._step()
        return found

    def _step(self) -> None:
        self._index += 1
        self._skip_blanks()

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self._content, self._index)
        self._index = blanks.end() if blanks else self._index

    def _refuse(self, reason: str) -> NoReturn:
        raise NotJsonError(self._index, reason)
