"""A full check of one dataset: every hash, link, rule, slice and checkpoint, trusting nothing but the head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odf_common.chain.named_objects import NamedObject, named_objects
from odf_common.chain.rules import check_append
from odf_common.chain.schema_evolution import misfit
from odf_common.chain.state import ChainState
from odf_common.chain.summary import SUMMARY, decode_summary
from odf_common.chain.walk import ChainTape, StoredBlock, block_place, decoded, walk_back
from odf_common.errors import AppendRefusedError, CorruptedError, MalformedBytesError, NotFoundError
from odf_common.identity.multihash import Multihash, sha3_256_of
from odf_common.metadata.events import AddData, ExecuteTransform
from odf_common.metadata.fragments import DataSlice
from odf_common.storage.layout import HEAD, INFO_FOLDER, REFS_FOLDER, ObjectKind
from odf_common.storage.ports import ObjectStore, RefStore
from odf_common.wire.encoded_block import EncodedBlock

OnProgress = Callable[[int, int], None]
"""Called with the number of steps done, and of all; each block is two steps: read and checked."""

OnBlock = Callable[[EncodedBlock], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDataset:
    """What was found to be true."""

    chain: ChainState
    blocks: int
    slices: int
    records: int
    size: int
    """Of slices and checkpoints together, in bytes."""
    unknown: tuple[str, ...]
    """What of the blocks is of later versions: its bytes are checked, its meaning is not."""


def check_dataset(
    objects: ObjectStore,
    refs: RefStore,
    *,
    on_progress: OnProgress = lambda done, total: None,
    on_block: OnBlock = lambda block: None,
) -> CheckedDataset:
    """Check everything that the head leads to. CorruptedError names the first file that is wrong, oldest block first.

    Blocks are read once and kept in bounded memory; slices are streamed. `on_block` sees each block that was found
    right, oldest first, and may raise a CorruptedError of its own.
    """
    head = _head(objects, refs)
    with ChainTape() as tape:
        expected = 0
        for stored in walk_back(objects, head):
            expected = expected or _number_of_blocks(stored)
            tape.record(stored)
            on_progress(len(tape), 2 * max(expected, len(tape)))
        check = _Check(objects, on_block)
        for done, stored in enumerate(tape.oldest_first(), 1):
            check.block(stored)
            on_progress(len(tape) + done, 2 * len(tape))
    _check_summary(objects, check.chain)
    return check.result(len(tape))


def _head(objects: ObjectStore, refs: RefStore) -> Multihash:
    place = f"{REFS_FOLDER}/{HEAD}"
    head = refs.get(HEAD)
    if head is None:
        raise CorruptedError(place, "it does not exist; is this the folder of a dataset?")
    if not objects.has(ObjectKind.BLOCKS, head):
        raise CorruptedError(place, f"it points to block {head}, which does not exist")
    return head


def _number_of_blocks(head: StoredBlock) -> int:
    """How many blocks there should be, says the newest."""
    return decoded(head).block.sequence_number + 1


def _check_summary(objects: ObjectStore, chain: ChainState) -> None:
    """What is cached beside the chain must not contradict it; an older one is merely behind."""
    data = objects.get_info(SUMMARY)
    if data is None:
        return
    place = f"{INFO_FOLDER}/{SUMMARY}"
    cached = decode_summary(data)
    if cached is None:
        raise CorruptedError(place, "it is damaged; delete it, it is made anew from the blocks")
    if cached.head == chain.head and cached != chain:
        raise CorruptedError(place, "it contradicts the blocks; delete it, it is made anew")


class _Check:
    """Folds blocks oldest first, checking each against what came before."""

    def __init__(self, objects: ObjectStore, on_block: OnBlock) -> None:
        self._objects = objects
        self._on_block = on_block
        self.chain = ChainState()
        self._slices = 0
        self._records = 0
        self._size = 0
        self._unknown: dict[str, None] = {}

    def block(self, stored: StoredBlock) -> None:
        encoded = decoded(stored)
        try:
            check_append(self.chain, encoded.block)
        except AppendRefusedError as error:
            reason = f"it breaks a rule of the chain: {error} [{error.code}]"
            raise CorruptedError(block_place(stored.hash), reason) from error
        self._unknown.update(dict.fromkeys(encoded.unknown))
        for named in named_objects(encoded.block):
            self._object(named)
        event = encoded.block.event
        if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
            self._slice(event.new_data)
        self.chain = self.chain.followed_by(encoded.block, stored.hash)
        self._on_block(encoded)

    def _object(self, named: NamedObject) -> None:
        try:
            size = self._objects.size(named.kind, named.hash)
            if size != named.size:
                raise CorruptedError(named.place, f"it has {size} bytes, its block says {named.size}")
            actual, _ = sha3_256_of(self._objects.read_chunks(named.kind, named.hash))
        except NotFoundError as error:
            raise CorruptedError(named.place, "the chain needs it, but it does not exist") from error
        if actual != named.hash:
            raise CorruptedError(named.place, f"its bytes hash to {actual}")
        self._size += size

    def _slice(self, promised: DataSlice) -> None:
        from odf_common.data.slices import check_records, slice_schema

        place = f"{ObjectKind.DATA.value}/{promised.physical_hash}"
        vocabulary = self.chain.vocabulary
        with self._objects.open_file(ObjectKind.DATA, promised.physical_hash) as file:
            check_records(file, promised, place=place, vocabulary=vocabulary)
            try:
                columns = slice_schema(file)
            except MalformedBytesError as error:
                raise CorruptedError(place, str(error)) from error
        assert self.chain.data_schema is not None, "a rule demands a schema before data"
        numbered = (vocabulary.offset_column, vocabulary.operation_type_column)
        reason = misfit(self.chain.data_schema, columns, numbered=numbered)
        if reason is not None:
            raise CorruptedError(place, reason)
        self._slices += 1
        self._records += promised.offset_interval.end - promised.offset_interval.start + 1

    def result(self, blocks: int) -> CheckedDataset:
        return CheckedDataset(
            chain=self.chain,
            blocks=blocks,
            slices=self._slices,
            records=self._records,
            size=self._size,
            unknown=tuple(self._unknown),
        )
