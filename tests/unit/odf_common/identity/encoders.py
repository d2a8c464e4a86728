"""Multibase encodings, made without the library that reads them."""

from __future__ import annotations

import base64
from collections.abc import Callable

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _base58(data: bytes) -> str:
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        digits = _BASE58[digit] + digits
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + digits


ENCODERS: dict[str, Callable[[bytes], str]] = {
    "f": lambda data: data.hex(),
    "F": lambda data: data.hex().upper(),
    "b": lambda data: base64.b32encode(data).decode().rstrip("=").lower(),
    "B": lambda data: base64.b32encode(data).decode().rstrip("="),
    "z": _base58,
    "m": lambda data: base64.b64encode(data).decode().rstrip("="),
    "u": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "U": lambda data: base64.urlsafe_b64encode(data).decode(),
}
"""Encoders of the final encodings by their prefix."""
