"""Multibase text: base16 is written, every encoding that the multibase table calls final is read."""

from __future__ import annotations

from typing import NoReturn

from odf_common.errors import InvalidTextError

_MAX_CHARACTERS = 512
"""Far above any hash or key; decoding base58 costs the square of its length."""

_FINAL = frozenset("fFbBzmuU")
_BASE16 = frozenset("fF")


def encode(data: bytes) -> str:
    """Lower-case base16 with its prefix `f` (the default of ODF since 0.34, RFC-012)."""
    return "f" + data.hex()


def decode(text: str, *, what: str = "multibase text") -> bytes:
    """Bytes of a multibase text in its canonical form; raises InvalidTextError with the position."""
    if text[:1] == "f":
        try:
            data = bytes.fromhex(text[1:])
        except ValueError:
            data = b""
        if len(data) * 2 + 1 == len(text) and data.hex() == text[1:]:
            return data
    return _decode_any(text, what)


def _decode_any(text: str, what: str) -> bytes:
    if not text:
        raise InvalidTextError(what, text, position=0, reason="it is empty")
    if len(text) > _MAX_CHARACTERS:
        raise InvalidTextError(what, text, position=_MAX_CHARACTERS, reason=f"longer than {_MAX_CHARACTERS} characters")
    if text[0] not in _FINAL:
        raise InvalidTextError(
            what, text, position=0, reason=f"unknown multibase prefix {text[0]!r}; hashes and ids are written with 'f'"
        )
    from multiformats import multibase

    try:
        data = multibase.decode(text)
        canonical = multibase.encode(data, multibase.get(code=text[0]).name)
    except Exception as error:
        # The library raises several unrelated classes, none of which its documentation promises.
        raise InvalidTextError(what, text, position=_first_odd(text), reason=_first_line(error)) from error
    if canonical != text:
        _refuse_other_form(what, text, canonical)
    return data


def _refuse_other_form(what: str, text: str, canonical: str) -> NoReturn:
    if text[0] in _BASE16 and len(text) % 2 == 0:
        raise InvalidTextError(what, text, position=len(text), reason="an odd number of base16 digits")
    differs = (i for i, (a, b) in enumerate(zip(text, canonical, strict=False)) if a != b)
    position = next(differs, min(len(text), len(canonical)))
    raise InvalidTextError(what, text, position=position, reason="not the canonical form of its encoding")


_ALPHABETS = {
    "f": "0123456789abcdef",
    "F": "0123456789ABCDEF",
    "b": "abcdefghijklmnopqrstuvwxyz234567",
    "B": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "z": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
}


def _first_odd(text: str) -> int:
    alphabet = _ALPHABETS.get(text[0])
    if alphabet is None:
        return 1
    return next((i for i, c in enumerate(text[1:], 1) if c not in alphabet), len(text))


def _first_line(error: Exception) -> str:
    return str(error).split(" encountered")[0].rstrip(".") or type(error).__name__
