"""Ed25519 key pairs, and the files that keep them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from odf_common.errors import MalformedBytesError
from odf_common.identity.did import DatasetId

if TYPE_CHECKING:
    from Crypto.PublicKey.ECC import EccKey

_OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and what follows from it. The key itself never appears in `repr`."""

    _key: EccKey = field(repr=False)

    @classmethod
    def generate(cls) -> Self:
        """A fresh random key pair."""
        from Crypto.PublicKey import ECC

        return cls(ECC.generate(curve="Ed25519"))

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """The key pair of a 32-byte private seed (RFC 8032)."""
        from Crypto.PublicKey import ECC

        return cls(ECC.construct(curve="Ed25519", seed=seed))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a PEM file (PKCS #8) that `save` wrote; refuses other kinds of key."""
        from Crypto.PublicKey import ECC

        try:
            key = ECC.import_key(path.read_bytes())
        except ValueError as error:
            # The library's reason is not passed on: it may quote the file.
            raise MalformedBytesError(f"{path} is not a PEM key file") from error
        if key.curve != "Ed25519" or not key.has_private():
            raise MalformedBytesError(f"{path} does not hold an Ed25519 private key")
        return cls(key)

    def save(self, path: Path) -> None:
        """Write a new PEM file that only its owner may read; FileExistsError rather than overwrite a key."""
        pem = self._key.export_key(format="PEM")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, _OWNER_ONLY)
            file.write(pem + "\n")
            file.flush()
            os.fsync(descriptor)

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the public key."""
        return self._key.public_key().export_key(format="raw")

    @property
    def dataset_id(self) -> DatasetId:
        """The identity that this key stands for."""
        return DatasetId(self.public_key)
