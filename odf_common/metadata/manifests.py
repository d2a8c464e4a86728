"""Blocks and snapshots, and the manifests that wrap them in text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from odf_common.identity.multihash import Multihash
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.base import U64, Model
from odf_common.metadata.events import DatasetKind, MetadataEvent
from odf_common.timestamp import Timestamp


class MetadataBlock(Model):
    """One link of a metadata chain."""

    system_time: Timestamp
    prev_block_hash: Multihash | None = None
    sequence_number: U64
    event: MetadataEvent


class DatasetSnapshot(Model):
    """What a new dataset should be: a name, a kind and its first events."""

    name: DatasetAlias
    kind: DatasetKind
    metadata: tuple[MetadataEvent, ...]


def _plain_integer(value: Any) -> Any:
    if type(value) is not int:
        raise ValueError(f"expected an integer, got {type(value).__name__}")
    return value


_PlainInteger = BeforeValidator(_plain_integer)
"""A Literal of numbers alone takes `true` and `1.0` for 1."""


class MetadataBlockManifest(Model):
    """A block in text. Version 2 and 3 differ only in their binary form; 1 is obsolete."""

    kind: Literal["MetadataBlock"] = "MetadataBlock"
    version: Annotated[Literal[2, 3], _PlainInteger] = 2
    content: MetadataBlock


class MetadataEventManifest(Model):
    """An event in text."""

    kind: Literal["MetadataEvent"] = "MetadataEvent"
    version: Annotated[Literal[1], _PlainInteger] = 1
    content: MetadataEvent


class DatasetSnapshotManifest(Model):
    """A snapshot in text."""

    kind: Literal["DatasetSnapshot"] = "DatasetSnapshot"
    version: Annotated[Literal[1], _PlainInteger] = 1
    content: DatasetSnapshot


MANIFEST_MODELS = (MetadataBlockManifest, MetadataEventManifest, DatasetSnapshotManifest)
