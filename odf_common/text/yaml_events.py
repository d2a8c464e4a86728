"""Steps through YAML text, and refuses what JSON has no word for: anchors, aliases and tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import yaml

from odf_common.text.document import SourceText
from odf_common.text.errors import InvalidManifestError, shown
from odf_common.text.events import Event, EventKind


class _Mark(Protocol):
    """What the marks of PyYAML's two parsers have in common."""

    @property
    def index(self) -> int: ...


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# What YAML calls printable, without the breaks that only YAML 1.1 knew (its parsers would change them) and the
# byte order mark (which they would drop).
_UNREADABLE = re.compile(r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_HINTS = {
    "mapping values are not allowed": "quote a text that holds ': '",
    "found character": "indent with spaces, and quote a text that begins with @, ` or %",
    "found a tab character": "indent with spaces",
    "found invalid Unicode character escape code": "write the character itself",
    "found unknown escape character": "write a backslash between double quotes as \\\\",
    "could not find expected ':'": "check the indentation, and that a ':' and a space follow the key",
    "did not find expected key": "check the indentation and the quotes",
}


def yaml_events(text: SourceText) -> Iterator[Event]:
    """The steps of all documents, one after the other."""
    odd = _UNREADABLE.search(text.content)
    if odd is not None:
        raise text.error(odd.start(), _unreadable(odd[0]))
    try:
        for event in yaml.parse(text.content, Loader=_LOADER):
            step = _step(text, event)
            if step is not None:
                yield step
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(text, error) from error


def _step(text: SourceText, event: yaml.Event) -> Event | None:
    at = _at(event.start_mark)
    match event:
        case yaml.NodeEvent():
            _refuse_reference(text, event)
        case yaml.DocumentStartEvent() if event.tags or event.version not in {None, (1, 2)}:
            raise text.error(at, "of all directives only %YAML 1.2 is read; remove the lines that begin with %")
    match event:
        case yaml.ScalarEvent():
            return Event(EventKind.SCALAR, at, event.value, event.implicit[0])
        case yaml.MappingStartEvent():
            return Event(EventKind.OPEN_OBJECT, at)
        case yaml.SequenceStartEvent():
            return Event(EventKind.OPEN_LIST, at)
        case yaml.CollectionEndEvent():
            return Event(EventKind.CLOSE, at)
    return None


def _refuse_reference(text: SourceText, event: yaml.NodeEvent) -> None:
    at = _at(event.start_mark)
    if isinstance(event, yaml.AliasEvent):
        raise text.error(at, f"aliases ({shown(event.anchor or '')}) are not read; write the value out")
    if event.anchor is not None:
        raise text.error(at, f"anchors ({shown(event.anchor)}) are not read; remove it")
    tag = getattr(event, "tag", None)
    if tag is not None:
        raise text.error(at, f"tags ({shown(tag)}) are not read; remove it, and quote the value if it is a text")


def _unreadable(character: str) -> str:
    return f"the character U+{ord(character):04X} cannot stand in YAML; write it as an escape between double quotes"


def _syntax_error(text: SourceText, error: yaml.MarkedYAMLError) -> InvalidManifestError:
    problem = error.problem or "it cannot be read"
    hint = next((hint for start, hint in _HINTS.items() if problem.startswith(start)), None)
    context = f" {error.context}" if error.context else ""
    return text.error(_at(error.problem_mark), f"not YAML: {problem}{context}" + (f"; {hint}" if hint else ""))


def _at(mark: _Mark | None) -> int:
    """The character index of a mark; by their types, PyYAML's events and errors may lack it."""
    return 0 if mark is None else mark.index
