"""The chain of one dataset in storage: opened at its head, extended block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from odf_common.chain.errors import HashMismatchError, ObjectNotFoundError, PrevBlockNotFoundError
from odf_common.chain.named_objects import named_objects
from odf_common.chain.rules import check_append
from odf_common.chain.state import ChainState
from odf_common.chain.summary import load_summary, save_summary
from odf_common.chain.walk import ChainTape, block_place, decoded, walk_back
from odf_common.errors import CorruptedError, MalformedBytesError, NotFoundError, RefCASFailedError
from odf_common.identity.multihash import Multihash
from odf_common.metadata.manifests import MetadataBlock
from odf_common.storage.layout import HEAD, ObjectKind
from odf_common.storage.ports import ObjectStore, RefStore
from odf_common.wire.encoded_block import EncodedBlock


@dataclass(frozen=True, slots=True)
class StagedBlocks:
    """Blocks that are stored and durable, but not yet part of any chain: a ref still has to move to them."""

    expected: Multihash | None
    """Where the ref must be when it moves."""
    chain: ChainState
    """The chain once it has."""
    hashes: tuple[Multihash, ...]


class MetadataChain:
    """Reads and extends the chain that `refs/head` points to. One per thread."""

    def __init__(self, objects: ObjectStore, refs: RefStore) -> None:
        self._objects = objects
        self._refs = refs
        self._known = ChainState()

    @property
    def head(self) -> Multihash | None:
        """The newest block, None where there is no chain yet."""
        return self._refs.get(HEAD)

    def state(self) -> ChainState:
        """The state at the head, from the cached summary where it fits.

        Reads only the blocks that the summary does not cover; CorruptedError names one that is missing or damaged.
        """
        head = self.head
        if head != self._known.head:
            self._known = self._state_at(head)
        return self._known

    def blocks(self) -> Iterator[EncodedBlock]:
        """All blocks from the head back to the Seed."""
        head = self.head
        if head is not None:
            yield from map(decoded, walk_back(self._objects, head))

    def append(
        self,
        blocks: Sequence[EncodedBlock],
        *,
        expected_hashes: Sequence[Multihash] | None = None,
        objects_exist: bool = True,
    ) -> tuple[Multihash, ...]:
        """Append blocks one after another with a single move of the ref: visible all together, or not at all.

        Every append rule is checked first. AppendRefusedError: a block breaks a rule, or does not have the hash that
        was expected. RefCASFailedError: the chain's head is not what the first block continues. With `objects_exist`
        off, named slices need not be stored.
        """
        if not blocks:
            return ()
        staged = self.stage(blocks, expected_hashes=expected_hashes, objects_exist=objects_exist)
        self._refs.compare_and_set(HEAD, expected=staged.expected, new=staged.hashes[-1])
        self.moved(staged)
        return staged.hashes

    def stage(
        self,
        blocks: Sequence[EncodedBlock],
        *,
        expected_hashes: Sequence[Multihash] | None = None,
        objects_exist: bool = True,
    ) -> StagedBlocks:
        """Check and durably store blocks, leaving the move of the ref to the caller's transaction."""
        if expected_hashes is not None:
            for encoded, expected in zip(blocks, expected_hashes, strict=True):
                _check_hash(encoded, expected)
        current = self.state()
        chain = current
        for encoded in blocks:
            self._check(chain, encoded, objects_exist=objects_exist)
            chain = chain.followed_by(encoded.block, encoded.hash)
        for encoded in blocks:
            self._objects.put_block(encoded.hash, encoded.data)
        # Slices may have been put by another process, which need not have synced them.
        named = (named for encoded in blocks for named in named_objects(encoded.block)) if objects_exist else ()
        self._objects.sync(named=[(each.kind, each.hash) for each in named])
        return StagedBlocks(current.head, chain, tuple(encoded.hash for encoded in blocks))

    def moved(self, staged: StagedBlocks) -> None:
        """Take note that the ref has moved to staged blocks."""
        self._known = staged.chain
        save_summary(self._objects, staged.chain)

    def _check(self, chain: ChainState, encoded: EncodedBlock, *, objects_exist: bool) -> None:
        prev = encoded.block.prev_block_hash
        try:
            check_append(chain, encoded.block)
        except PrevBlockNotFoundError as error:
            if prev is None or self._objects.has(ObjectKind.BLOCKS, prev):
                raise RefCASFailedError(HEAD, expected=prev, actual=chain.head) from error
            raise
        if objects_exist:
            self._check_objects_exist(encoded.block)

    def _check_objects_exist(self, block: MetadataBlock) -> None:
        for named in named_objects(block):
            try:
                size = self._objects.size(named.kind, named.hash)
            except NotFoundError as error:
                raise ObjectNotFoundError(f"{named.place} is named by the event, but is not stored") from error
            if size != named.size:
                raise ObjectNotFoundError(f"{named.place} has {size} bytes, the event says {named.size}")

    def _state_at(self, head: Multihash | None) -> ChainState:
        if head is None:
            return ChainState()
        summary = load_summary(self._objects)
        if summary is not None and summary.head == head:
            return summary
        chain = self._fold(head, summary)
        save_summary(self._objects, chain)
        return chain

    def _fold(self, head: Multihash, summary: ChainState | None) -> ChainState:
        """Read the blocks behind the summary, or all of them where it is of no use."""
        with ChainTape() as tape:
            chain = summary or ChainState()
            for stored in walk_back(self._objects, head, until=chain.head):
                tape.record(stored)
            for stored in tape.oldest_first():
                block = decoded(stored).block
                if block.prev_block_hash is None:
                    chain = ChainState()  # the summary was about another chain, and the walk went past it
                chain = _followed_by(chain, block, stored.hash)
        return chain


def _followed_by(chain: ChainState, block: MetadataBlock, block_hash: Multihash) -> ChainState:
    try:
        return chain.followed_by(block, block_hash)
    except MalformedBytesError as error:
        raise CorruptedError(block_place(block_hash), str(error)) from error


def _check_hash(block: EncodedBlock, expected: Multihash) -> None:
    """Rule 17: HashMismatchError when a block's bytes are not those that were expected."""
    if block.hash != expected:
        raise HashMismatchError(f"the block hashes to {block.hash}, expected {expected}")
