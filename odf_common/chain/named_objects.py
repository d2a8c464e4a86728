"""The files that a block brings with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from odf_common.identity.multihash import Multihash
from odf_common.metadata.events import AddData, ExecuteTransform
from odf_common.metadata.manifests import MetadataBlock
from odf_common.storage.layout import ObjectKind


class NamedObject(NamedTuple):
    """A slice or checkpoint, `size` bytes long as its block says."""

    kind: ObjectKind
    hash: Multihash
    size: int

    @property
    def place(self) -> str:
        """Where it lies in a dataset's folder, as errors name it."""
        return f"{self.kind.value}/{self.hash}"


def named_objects(block: MetadataBlock) -> Iterator[NamedObject]:
    """The slice and the checkpoint of a data event; nothing for other events."""
    event = block.event
    if not isinstance(event, AddData | ExecuteTransform):
        return
    if event.new_data is not None:
        yield NamedObject(ObjectKind.DATA, event.new_data.physical_hash, event.new_data.size)
    if event.new_checkpoint is not None:
        yield NamedObject(ObjectKind.CHECKPOINTS, event.new_checkpoint.physical_hash, event.new_checkpoint.size)
