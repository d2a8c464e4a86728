"""Builds plain values from events, with the rules that YAML and JSON documents share."""

from __future__ import annotations

from collections.abc import Iterator

from odf_common.text.document import Document, JsonValue, Place, SourceText
from odf_common.text.errors import InvalidManifestError, shown
from odf_common.text.events import Event, EventKind
from odf_common.text.scalars import plain_scalar

MAX_DEPTH = 64
"""Objects and lists within each other."""

MAX_VALUES = 200_000
"""Values in one text; far above any manifest, and bounds the time and memory that a hostile text takes."""

_MERGE_KEY = "<<"


def compose(text: SourceText, events: Iterator[Event]) -> Iterator[Document]:
    """The documents of a text, one by one; InvalidManifestError at the first thing that is wrong."""
    composer = _Composer(text, events)
    for event in events:
        document = composer.document(event)
        if not _is_nothing(event):
            yield document


def _is_nothing(event: Event) -> bool:
    """Whether a document is just its `---`."""
    return event.kind is EventKind.SCALAR and event.plain and not event.text


class _Composer:
    """Builds one document after the other; `_path` leads to the value at hand."""

    def __init__(self, text: SourceText, events: Iterator[Event]) -> None:
        self._text = text
        self._events = events
        self._path: list[str | int] = []
        self._values = 0

    def document(self, first: Event) -> Document:
        value, root = self._value(first)
        return Document(value=value, text=self._text, root=root)

    def _value(self, event: Event) -> tuple[JsonValue, Place]:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._error(event, f"more than {MAX_VALUES} values in one text")
        if event.kind is EventKind.SCALAR:
            return self._scalar(event), Place(event.at)
        if len(self._path) >= MAX_DEPTH:
            raise self._error(event, f"objects and lists are nested more than {MAX_DEPTH} deep")
        return self._object(event) if event.kind is EventKind.OPEN_OBJECT else self._list(event)

    def _object(self, opening: Event) -> tuple[JsonValue, Place]:
        values: dict[str, JsonValue] = {}
        places: dict[str | int, Place] = {}
        while (event := next(self._events)).kind is not EventKind.CLOSE:
            key = self._key(event)
            self._path.append(key)
            if key in values:
                line = self._text.position(places[key].index).line
                raise self._error(event, f"duplicate key {shown(key)}, first given in line {line}")
            values[key], place = self._value(next(self._events))
            places[key] = Place(event.at, place.children)
            self._path.pop()
        return values, Place(opening.at, places)

    def _list(self, opening: Event) -> tuple[JsonValue, Place]:
        values: list[JsonValue] = []
        places: dict[str | int, Place] = {}
        while (event := next(self._events)).kind is not EventKind.CLOSE:
            self._path.append(len(values))
            value, places[len(values)] = self._value(event)
            values.append(value)
            self._path.pop()
        return values, Place(opening.at, places)

    def _key(self, event: Event) -> str:
        if event.kind is not EventKind.SCALAR:
            raise self._error(event, "an object or list cannot be a key; if it is a text, quote it")
        if event.plain and event.text == _MERGE_KEY:
            raise self._error(event, "merge keys are not read; write the fields out, or quote the key")
        key = self._scalar(event)
        if not isinstance(key, str):
            raise self._error(event, f"keys are texts: quote the key {shown(event.text)}")
        return key

    def _scalar(self, event: Event) -> str | int | float | bool | None:
        if not event.plain:
            return event.text
        try:
            return plain_scalar(event.text)
        except ValueError as error:
            raise self._error(event, str(error)) from error

    def _error(self, event: Event, reason: str) -> InvalidManifestError:
        return self._text.error(event.at, reason, path=self._path)
