"""What can be wrong with a manifest, and where."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from odf_common.errors import OdfError

MAX_PROBLEMS = 20
"""So many problems of one document are kept; the rest is counted."""

MAX_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong; line and column count from 1, `field` is empty for the document itself."""

    line: int
    column: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: " + (f"{self.field}: " if self.field else "") + self.reason


class InvalidManifestError(OdfError, ValueError):
    """A document cannot be read or is not what it should be.

    The message tells the first of its `problems`; `omitted` counts those beyond MAX_PROBLEMS.
    """

    def __init__(self, source: str, problems: Sequence[Problem], *, omitted: int = 0) -> None:
        self.source = source
        self.problems = tuple(problems)
        self.omitted = omitted
        first = self.problems[0]
        self.line = first.line
        self.column = first.column
        self.field = first.field
        self.reason = first.reason
        super().__init__(f"{source}:{first}{_and_more(len(self.problems) - 1 + omitted)}")


def shown(text: str) -> str:
    """A text between quotes and cut, so that hostile input can neither flood nor forge a message."""
    return json.dumps(
        text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "…", ensure_ascii=False
    )


def described(value: object) -> str:
    """Kind and, where it is short, content of a value that was read."""
    match value:
        case None:
            return "null"
        case bool():
            return f"a boolean ({str(value).lower()})"
        case int():
            return f"an integer ({value})"
        case float():
            return f"a number ({value})"
        case str():
            return f"a text ({shown(value)})"
        case list():
            return "a list"
        case _:
            return "an object"


def _and_more(count: int) -> str:
    if count == 0:
        return ""
    return f" (and {count} more problem{'s' if count > 1 else ''})"
