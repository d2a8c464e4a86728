"""The blocks that a move of a head brought, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from odf_common.chain.walk import ChainTape, StoredBlock, decoded, walk_back
from odf_common.identity.multihash import Multihash
from odf_common.storage.ports import ObjectStore
from odf_common.wire.encoded_block import EncodedBlock
from odf_common.wire.envelope import prev_block_hash


def new_blocks(
    objects: ObjectStore, recent: Mapping[Multihash, EncodedBlock], *, old: Multihash | None, new: Multihash
) -> Iterator[EncodedBlock]:
    """The blocks behind `old` up to `new`, from memory where they were just written, otherwise from storage.

    If the head was moved aside, those that the two chains do not share. CorruptedError names a block that is missing.
    """
    known = _from_memory(recent, old, new)
    return iter(known) if known is not None else _from_storage(objects, old, new)


def _from_memory(
    recent: Mapping[Multihash, EncodedBlock], old: Multihash | None, new: Multihash
) -> list[EncodedBlock] | None:
    found = []
    block_hash: Multihash | None = new
    while block_hash is not None and block_hash != old:
        block = recent.get(block_hash)
        if block is None:
            return None
        found.append(block)
        block_hash = block.block.prev_block_hash
    return found[::-1]


def _from_storage(objects: ObjectStore, old: Multihash | None, new: Multihash) -> Iterator[EncodedBlock]:
    with ChainTape() as tape:
        hashes = set()
        oldest: StoredBlock | None = None
        for oldest in walk_back(objects, new, until=old):
            tape.record(oldest)
            hashes.add(oldest.hash)
        continues = oldest is None or prev_block_hash(oldest.data) == old
        shared = None if continues or old is None else _shared(objects, old, hashes)
        yield from map(decoded, _behind(tape.oldest_first(), shared))


def _shared(objects: ObjectStore, old: Multihash, hashes: set[Multihash]) -> Multihash | None:
    """The newest block of the old chain that the new one has too."""
    return next((stored.hash for stored in walk_back(objects, old) if stored.hash in hashes), None)


def _behind(blocks: Iterator[StoredBlock], shared: Multihash | None) -> Iterator[StoredBlock]:
    if shared is not None:
        for stored in blocks:
            if stored.hash == shared:
                break
    return blocks
