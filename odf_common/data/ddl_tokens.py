"""The words of a DDL string, one after another, with their positions for errors."""

from __future__ import annotations

import re
from typing import NoReturn

from odf_common.errors import InvalidTextError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted> "(?:[^"]|"")*" | `(?:[^`]|``)*` )
      | (?P<word> [^\W\d]\w* )
      | (?P<number> -?[0-9]{1,10} (?!\w) )
      | (?P<mark> [<>(),:] )
      | (?P<end> \Z )
    )""",
    re.VERBOSE,
)
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def quoted(name: str) -> str:
    """A name as DDL reads it: bare where it can be, otherwise in double quotes."""
    if _BARE_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


class DdlTokens:
    """Reads tokens from the left; every method that does not find what it wants raises InvalidTextError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        if match is None:
            odd = len(self._text) - len(self._text[self._end :].lstrip())
            self.refuse("expected a name, a type or one of < > ( ) , :", odd)
        self._kind = match.lastgroup
        self._token = match[self._kind or 0]
        self.position = match.start(self._kind or 0)
        self._end = match.end()

    def refuse(self, reason: str, position: int | None = None) -> NoReturn:
        """Raise the error, at the next token or at `position`."""
        raise InvalidTextError(
            "DDL", self._text, position=self.position if position is None else position, reason=reason
        )

    def accept(self, expected: str) -> bool:
        """Go past the next token if it is this mark or keyword."""
        if self._kind not in ("word", "mark") or self._token.upper() != expected:
            return False
        self._advance()
        return True

    def expect(self, expected: str) -> None:
        """Go past this mark or keyword."""
        if not self.accept(expected):
            self._expected(repr(expected))

    def name(self) -> str:
        """The next token as a name, without its quotes."""
        token = self._token
        if self._kind == "quoted":
            self._advance()
            return token[1:-1].replace(token[0] * 2, token[0])
        if self._kind != "word":
            self._expected("a name (in double quotes, if it is not just letters, digits and '_')")
        self._advance()
        return token

    def keyword(self, what: str) -> str:
        """The next token as a keyword, in capitals."""
        if self._kind != "word":
            self._expected(what)
        keyword = self._token.upper()
        self._advance()
        return keyword

    def number(self, least: int, most: int) -> int:
        """The next token as a whole number, both bounds allowed."""
        if self._kind != "number" or not least <= int(self._token) <= most:
            self._expected(f"a number from {least} to {most}")
        number = int(self._token)
        self._advance()
        return number

    def end(self) -> None:
        """Check that nothing follows."""
        if self._kind != "end":
            self._expected("',' or the end")

    def _expected(self, what: str) -> NoReturn:
        found = "the end" if self._kind == "end" else repr(self._token[:40])
        self.refuse(f"expected {what}, found {found}")
