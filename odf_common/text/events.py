"""What the readers of YAML and JSON tell the composer."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class EventKind(Enum):
    """A scalar, or one end of an object or list."""

    SCALAR = "scalar"
    OPEN_OBJECT = "open object"
    OPEN_LIST = "open list"
    CLOSE = "close"


class Event(NamedTuple):
    """A step through a document. Keys and values of an object come in turn.

    `at` is the index of the first character. `text` belongs to scalars; a `plain` one stands without quotes and may
    mean a number, a boolean or null.
    """

    kind: EventKind
    at: int
    text: str = ""
    plain: bool = False
