"""What a scalar without quotes means: the core schema of YAML 1.2, of which JSON's literals are a part."""

from __future__ import annotations

import math
import re

MAX_NUMBER_CHARACTERS = 40
"""Twice what the largest number of ODF takes; reading an integer costs the square of its length."""

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

_NUMBER_STARTS = frozenset("+-.0123456789")

_NUMBER = re.compile(
    r"""
      (?P<decimal> [-+]?[0-9]++ )
    | 0o(?P<octal> [0-7]++ )
    | 0x(?P<hexadecimal> [0-9a-fA-F]++ )
    | (?P<real> [-+]? (?: \.[0-9]++ | [0-9]++ (?: \.[0-9]*+ )? ) (?: [eE][-+]?[0-9]++ )? )
    | (?P<endless> [-+]?\.(?: inf | Inf | INF ) | \.(?: nan | NaN | NAN ) )
    """,
    re.VERBOSE,
)

_BASES = {"decimal": 10, "octal": 8, "hexadecimal": 16}


def plain_scalar(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar; ValueError, with a reason, for a number that is out of bounds."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text) if text[0] in _NUMBER_STARTS else None
    return text if match is None else _number(match)


def is_plain_text(text: str) -> bool:
    """Whether the text may stand without quotes and still is read as a text."""
    return text not in _WORDS and (text[0] not in _NUMBER_STARTS or _NUMBER.fullmatch(text) is None)


def _number(match: re.Match[str]) -> int | float:
    text = match[0]
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise ValueError(f"a number of {len(text)} characters; at most {MAX_NUMBER_CHARACTERS} are read, quote a text")
    kind = match.lastgroup or ""
    if kind in _BASES:
        return int(match[kind], _BASES[kind])
    value = math.inf if kind == "endless" else float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number; quote it if it is a text")
    return value
