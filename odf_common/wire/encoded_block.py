"""A block together with its bytes."""

from __future__ import annotations

from dataclasses import dataclass

from odf_common.identity.multihash import Multihash
from odf_common.metadata.manifests import MetadataBlock


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block as its bytes, and what we understand of them."""

    data: bytes
    hash: Multihash
    """The block's address: the hash of exactly these bytes."""
    manifest_version: int
    block: MetadataBlock
    unknown: tuple[str, ...] = ()
    """What of the bytes the model does not show: fields and events of later versions."""
