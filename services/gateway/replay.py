"""Blocks of the past from the chain itself. Everything here reads storage: call it in threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from odf_common.catalog.records import DatasetEntry
from odf_common.chain.walk import decoded, walk_back
from odf_common.identity.multihash import Multihash
from odf_common.messages.appending import appended_block
from odf_common.messages.block_appended import AppendedBlock, BlockAppended
from odf_common.repository.repository import Repository
from odf_common.storage.layout import HEAD
from odf_common.storage.ports import ObjectStore
from odf_common.wire.encoded_block import EncodedBlock

STRETCH = 10_000
"""So many hashes are kept at a time, however long the chain is."""


class History:
    """The blocks of a repository's datasets."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def next_sequence_number(self, entry: DatasetEntry) -> int:
        """The number of the block that comes next."""
        head = self._repository.catalog.ref(entry.id, HEAD)
        return 0 if head is None else self._block(entry, head).block.sequence_number + 1

    def stretches_from(
        self, entry: DatasetEntry, first: int, *, until: Multihash | None = None, length: int = STRETCH
    ) -> list[Multihash]:
        """The last block of each stretch of the chain from number `first` to `until`, or to the head, oldest first."""
        head = until or self._repository.catalog.ref(entry.id, HEAD)
        if head is None:
            return []
        missing = self._block(entry, head).block.sequence_number - first + 1
        if missing <= length:
            return [head] if missing > 0 else []
        walked = zip(range(missing, 0, -1), walk_back(self._objects(entry), head), strict=False)
        ends = [stored.hash for left, stored in walked if left % length == 0 or left == missing]
        ends.reverse()
        return ends

    def hashes_from(self, entry: DatasetEntry, first: int, *, until: Multihash | None = None) -> list[Multihash]:
        """The blocks from number `first` to `until`, or to the head, oldest first."""
        head = until or self._repository.catalog.ref(entry.id, HEAD)
        if head is None:
            return []
        missing = self._block(entry, head).block.sequence_number - first + 1
        hashes: list[Multihash] = []
        if missing > 0:
            for stored in walk_back(self._objects(entry), head):
                hashes.append(stored.hash)
                if len(hashes) == missing:
                    break
        hashes.reverse()
        return hashes

    def events(self, entry: DatasetEntry, hashes: Sequence[Multihash]) -> list[BlockAppended]:
        """What was told about blocks."""
        return [BlockAppended.of(appended_block(entry.id, entry.alias, self._block(entry, each))) for each in hashes]

    def back_from(self, entry: DatasetEntry, block_hash: Multihash, *, limit: int) -> Iterator[AppendedBlock]:
        """What was told about a block and those before it, newest first, so many at most."""
        for stored in islice(walk_back(self._objects(entry), block_hash), limit):
            yield appended_block(entry.id, entry.alias, decoded(stored))

    def newest(self, entry: DatasetEntry, head: Multihash) -> BlockAppended:
        """What was told about the head."""
        return self.events(entry, [head])[0]

    def _block(self, entry: DatasetEntry, block_hash: Multihash) -> EncodedBlock:
        return decoded(next(walk_back(self._objects(entry), block_hash)))

    def _objects(self, entry: DatasetEntry) -> ObjectStore:
        return self._repository.folder_of(entry).objects
