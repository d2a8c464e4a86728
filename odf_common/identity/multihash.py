"""Multihashes: a digest together with the function that made it (metadata-wire facts, section 2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from odf_common.errors import InvalidTextError, MalformedBytesError
from odf_common.identity import multibase
from odf_common.text_value import BinaryTextValue

SHA2_256 = 0x12
SHA3_256 = 0x16
ARROW0_SHA3_256 = 0x300016
"""Private-use code of the logical hash of tabular data."""

DIGEST_SIZE = 32  # bytes

_SHORT_CHARACTERS = 8

# Code and length of the hash functions that ODF uses, as they stand before the digest.
_PREFIXES = {
    SHA2_256: bytes.fromhex("1220"),
    SHA3_256: bytes.fromhex("1620"),
    ARROW0_SHA3_256: bytes.fromhex("9680c00120"),
}


@dataclass(frozen=True, slots=True)
class Multihash(BinaryTextValue):
    """A self-describing hash. Text form: base16 multibase, `f1620…`."""

    code: int
    digest: bytes

    JSON_SCHEMA = {"type": "string", "format": "multihash"}

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Decode code, length and digest; nothing may follow the digest."""
        for code, prefix in _PREFIXES.items():
            if data.startswith(prefix) and len(data) == len(prefix) + DIGEST_SIZE:
                return cls(code, data[len(prefix) :])
        return cls._from_unusual(data)

    @classmethod
    def _from_unusual(cls, data: bytes) -> Self:
        from multiformats import varint

        try:
            code, code_size, rest = varint.decode_raw(data)
            length, length_size, _ = varint.decode_raw(rest)
        except ValueError as error:
            raise MalformedBytesError(f"{data[:40].hex()} is not a valid multihash: {error}") from error
        digest = bytes(data[code_size + length_size :])
        if length > DIGEST_SIZE or len(digest) != length:
            raise MalformedBytesError(
                f"{data[:40].hex()} is not a valid multihash: "
                f"it declares {length} bytes of digest and has {len(digest)} (at most {DIGEST_SIZE} are allowed)"
            )
        return cls(code, digest)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read any final multibase encoding."""
        data = multibase.decode(text, what="multihash")
        try:
            return cls.from_bytes(data)
        except MalformedBytesError as error:
            raise InvalidTextError("multihash", text, position=0, reason=str(error)) from error

    def to_bytes(self) -> bytes:
        """Code, length and digest: what every hash field of a block carries."""
        prefix = _PREFIXES.get(self.code)
        if prefix is not None and len(self.digest) == DIGEST_SIZE:
            return prefix + self.digest
        from multiformats import varint

        return varint.encode(self.code) + varint.encode(len(self.digest)) + self.digest

    def __str__(self) -> str:
        return multibase.encode(self.to_bytes())

    @property
    def short(self) -> str:
        """The last 8 characters, for people: the prefix is the same for all."""
        return str(self)[-_SHORT_CHARACTERS:]


def sha3_256(data: bytes) -> Multihash:
    """The hash that names blocks, slices and checkpoints."""
    return Multihash(SHA3_256, hashlib.sha3_256(data).digest())


def sha3_256_of(chunks: Iterable[bytes]) -> tuple[Multihash, int]:
    """The hash of a stream of chunks, and its size in bytes."""
    hasher = hashlib.sha3_256()
    size = 0
    for chunk in chunks:
        hasher.update(chunk)
        size += len(chunk)
    return Multihash(SHA3_256, hasher.digest()), size
