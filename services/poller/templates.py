"""`${{ env.NAME }}` in fetch settings: only names of the allow-list, and values that no text of ours ever shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from services.poller.errors import StepRefusedError

_TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*")
_HIDDEN = "***"
_LONG_WORD = 5


def names_in(text: str) -> list[str]:
    """The variables that a text names; StepRefusedError for a placeholder that is none of them."""
    return [_name(each.group(1)) for each in _TEMPLATE.finditer(text)]


def _name(inner: str) -> str:
    found = _NAME.fullmatch(inner)
    if found is None:
        raise StepRefusedError(f"the placeholder ${{{{{inner[:40]}}}}} is not known: write ${{{{ env.NAME }}}}")
    return found.group(1)


def check_allowed(name: str, allowed: frozenset[str]) -> None:
    """StepRefusedError for a variable that sources may not use."""
    if name not in allowed:
        raise StepRefusedError(
            f"the environment variable {name} is not for sources: whoever runs the poller allows it by adding the "
            "name to ODF_POLLER_ENV_ALLOW"
        )


@dataclass(frozen=True, slots=True)
class Secrets:
    """Fills placeholders, and remembers what it put in so that it can be hidden again."""

    allowed: frozenset[str]
    environment: Mapping[str, str]
    _used: set[str] = field(default_factory=set)

    def value(self, name: str) -> str:
        """The value of a variable; StepRefusedError if it is not allowed or not set."""
        check_allowed(name, self.allowed)
        found = self.environment.get(name)
        if found is None:
            raise StepRefusedError(f"the environment variable {name}, which the source uses, is not set")
        if found:
            self._used.add(found)
        return found

    def filled(self, text: str) -> str:
        """The text with values in place of its placeholders."""
        return _TEMPLATE.sub(lambda found: self.value(_name(found.group(1))), text)

    def hidden(self, text: str) -> str:
        """The text without any value that was filled in, however it was quoted or taken apart on its way."""
        forms = {form for value in self._used for form in _forms(value)}
        if not forms:
            return text
        longest_first = sorted(forms, key=len, reverse=True)  # a value may contain another one
        return re.sub("|".join(map(re.escape, longest_first)), _HIDDEN, text, flags=re.IGNORECASE)


def _forms(value: str) -> set[str]:
    """How a value may appear: whole, quoted, and its words, as libraries tell of the part that they choke on."""
    quoted = {repr(value)[1:-1], quote(value), quote(value, safe=""), quote_plus(value)}
    words = {word for word in re.split(r"[^0-9A-Za-z]+", value) if len(word) >= _LONG_WORD}
    return {value, *quoted, *words}
