"""The names inside one dataset's folder (ODF dataset layout), and what may become a name."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from enum import Enum

from odf_common.errors import CorruptedError, InvalidTextError
from odf_common.identity.multihash import Multihash

HEAD = "head"
"""The ref that every dataset has, and the only one that peers know."""

REFS_FOLDER = "refs"
INFO_FOLDER = "info"
ALIAS_INFO = "alias"

MAX_REF_SIZE = 512  # bytes
"""A ref is one multihash; a longer file is not read."""

_MAX_NAME_CHARACTERS = 200
_SEGMENT = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*"
_SEGMENTS = re.compile(rf"(?:{_SEGMENT}/)*(?:{_SEGMENT})?", re.ASCII)

_BASE58BTC = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class ObjectKind(Enum):
    """The folders whose files are named by the hash of their content."""

    BLOCKS = "blocks"
    DATA = "data"
    CHECKPOINTS = "checkpoints"


def hash_of_name(name: str) -> Multihash | None:
    """The hash that a file name stands for; None for what is not an object (staging files, strangers)."""
    try:
        return Multihash.parse(name)
    except InvalidTextError:
        return None


def other_spellings(object_hash: Multihash) -> tuple[str, ...]:
    """The file names that another writer may have given to the same hash."""
    # Not by the multibase library, which takes half a millisecond: many objects are looked for that are not there.
    data = object_hash.to_bytes()
    base64url = urlsafe_b64encode(data).rstrip(b"=").decode()
    return f"F{data.hex().upper()}", f"z{_base58btc(data)}", f"u{base64url}"


def check_ref_name(name: str) -> None:
    """Refuse a ref name that could be a surprise as a path; names such as `branches/review` are fine."""
    _check_name("ref name", name)


def is_ref_name(name: str) -> bool:
    """Whether `check_ref_name` lets it pass."""
    try:
        check_ref_name(name)
    except InvalidTextError:
        return False
    return True


def ref_content(target: Multihash) -> bytes:
    """What a ref's file holds: the text of the hash, without a newline."""
    return str(target).encode()


def parse_ref_content(name: str, content: bytes) -> Multihash:
    """Read a ref's file as strictly as peers do: nothing but the canonical text."""
    try:
        target = Multihash.parse(content.decode("ascii"))
    except (UnicodeDecodeError, InvalidTextError) as error:
        raise CorruptedError(f"{REFS_FOLDER}/{name}", f"it does not hold a block hash: {error}") from error
    if ref_content(target) != content:
        raise CorruptedError(f"{REFS_FOLDER}/{name}", f"the hash {target} is not written in its canonical form")
    return target


def check_info_name(name: str) -> None:
    """Refuse a name of a derived file that could be a surprise as a path."""
    _check_name("info name", name)


def check_ref_fits(name: str, existing: Iterable[str]) -> None:
    """Refuse a new ref `a/b` beside `a`: as files, one of them would have to be a folder."""
    for other in existing:
        if name.startswith(f"{other}/") or other.startswith(f"{name}/"):
            raise InvalidTextError("ref name", name, position=0, reason=f"it cannot exist beside the ref {other!r}")


def _check_name(what: str, name: str) -> None:
    if len(name) > _MAX_NAME_CHARACTERS:
        reason = f"longer than {_MAX_NAME_CHARACTERS} characters"
        raise InvalidTextError(what, name, position=_MAX_NAME_CHARACTERS, reason=reason)
    valid = _SEGMENTS.match(name)
    end = valid.end() if valid else 0
    if end < len(name) or not name or name.endswith("/"):
        reason = "expected ASCII letters, digits, '_', '-' and single '.', in parts that start with a letter or digit"
        raise InvalidTextError(what, name, position=end, reason=reason)


def _base58btc(data: bytes) -> str:
    number = int.from_bytes(data)
    text = ""
    while number:
        number, digit = divmod(number, len(_BASE58BTC))
        text = _BASE58BTC[digit] + text
    leading_zeros = len(data) - len(data.lstrip(b"\0"))
    return _BASE58BTC[0] * leading_zeros + text
