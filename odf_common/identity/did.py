"""Decentralised identifiers of datasets and accounts: an Ed25519 public key as a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from odf_common.errors import InvalidTextError, MalformedBytesError
from odf_common.identity import multibase
from odf_common.text_value import BinaryTextValue

PUBLIC_KEY_SIZE = 32  # bytes

_ED25519_PUB = bytes.fromhex("ed01")
DID_KEY_PREFIX = "did:key:"
"""The W3C form of the same identities."""


@dataclass(frozen=True, slots=True)
class Did(BinaryTextValue):
    """An Ed25519 public key. Binary form: `ed 01` and the key, 34 bytes. Text: `did:odf:` and base16 of those."""

    public_key: bytes

    PREFIX = "did:odf:"
    JSON_SCHEMA = {"type": "string", "format": "did:odf"}

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Decode the 34 bytes of the binary form."""
        if not data.startswith(_ED25519_PUB) or len(data) != len(_ED25519_PUB) + PUBLIC_KEY_SIZE:
            raise MalformedBytesError(
                f"{data[:40].hex()} is not an Ed25519 identity: "
                f"expected ed01 and {PUBLIC_KEY_SIZE} bytes of public key, got {len(data)} bytes in all"
            )
        return cls(data[len(_ED25519_PUB) :])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `did:odf:` and any final multibase encoding."""
        return cls._parse_with(cls.PREFIX, text)

    @classmethod
    def from_did_key(cls, text: str) -> Self:
        """Read the W3C form of the same key, `did:key:z…`."""
        return cls._parse_with(DID_KEY_PREFIX, text)

    @classmethod
    def _parse_with(cls, prefix: str, text: str) -> Self:
        what = f"{prefix.rstrip(':')} identifier"
        if not text.startswith(prefix):
            raise InvalidTextError(what, text, position=0, reason=f"it does not start with {prefix!r}")
        try:
            return cls.from_bytes(multibase.decode(text[len(prefix) :], what=what))
        except InvalidTextError as error:
            position = len(prefix) + error.position
            raise InvalidTextError(what, text, position=position, reason=error.reason) from error
        except MalformedBytesError as error:
            raise InvalidTextError(what, text, position=len(prefix), reason=str(error)) from error

    def to_bytes(self) -> bytes:
        """The 34 bytes that blocks carry."""
        return _ED25519_PUB + self.public_key

    @property
    def multibase(self) -> str:
        """The text form without `did:odf:`; names the dataset's folder in a repository."""
        return multibase.encode(self.to_bytes())

    def to_did_key(self) -> str:
        """The W3C form of the same key, in base58btc as that specification wants."""
        from multiformats import multibase as encodings

        return DID_KEY_PREFIX + encodings.encode(self.to_bytes(), "base58btc")

    def __str__(self) -> str:
        return self.PREFIX + self.multibase


class DatasetId(Did):
    """The identity of a dataset, made once with its Seed block."""

    __slots__ = ()


class AccountId(Did):
    """The identity of an account; the same shape as a dataset's."""

    __slots__ = ()
