"""The keys of all rows of a dataset, for the Ledger strategy: embedded RocksDB, derived from the chain.

It holds what is committed; the keys of batches that wait for their commit are kept in memory beside it. So a crash
or a rejected batch leaves nothing wrong behind, and what is missing is read again from the slices.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog
from rocksdict import BlockBasedOptions, Cache, Options, Rdict, WriteBatch

from odf_common.data.slices import read_slice, slice_schema
from odf_common.ingest.merge import ledger_keys
from odf_common.metadata.events import AddData
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
from odf_common.metadata.sources import MergeStrategyLedger
from odf_common.storage.layout import ObjectKind

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.identity.did import DatasetId
    from odf_common.ingest.source import SourcePlan
    from odf_common.storage.ports import ObjectStore

PrimaryKey = tuple[str, ...]

_STATE = b"\x00state"  # no key begins with a zero byte: keys begin with the tag of a type
_KNOWN = b""

_BLOOM_BITS = 10  # for each key: one lookup in a hundred reads a block in vain
_CACHE_SIZE = 32 << 20  # bytes

_log = structlog.get_logger(__name__)


class LedgerIndex:
    """The committed keys for one primary key."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._db = Rdict(str(path), _options())
        state = self._db.get(_STATE)
        self.next_offset: int = 0
        self.last_slice: str | None = None
        if state is not None:
            self.next_offset, self.last_slice = json.loads(state)

    def contains(self, keys: Sequence[bytes]) -> list[bool]:
        """For each key, whether a committed row has it."""
        return [found is not None for found in self._db.get(list(keys)) or ()]

    def add(self, keys: Iterable[bytes], committed: DataSlice) -> None:
        """Learn the keys of a slice, and that everything up to its end is known, in one write."""
        self.next_offset, self.last_slice = committed.offset_interval.end + 1, str(committed.physical_hash)
        changes = WriteBatch(raw_mode=True)
        for key in keys:
            changes.put(key, _KNOWN)
        changes.put(_STATE, json.dumps([self.next_offset, self.last_slice]).encode())
        self._db.write(changes)

    def close(self) -> None:
        """Let go of the files."""
        self._db.close()


class _Waiting:
    """The keys of a slice that was proposed."""

    def __init__(self, proposed: DataSlice, keys: dict[PrimaryKey, set[bytes]]) -> None:
        self.slice = proposed
        self.keys = keys


class KeyIndexes:
    """All indexes of one dataset: one for each primary key of its sources. Used by one thread."""

    def __init__(self, folder: Path, primary_keys: Iterable[PrimaryKey]) -> None:
        self._indexes = {key: _opened(folder, key) for key in set(primary_keys)}
        self._waiting: deque[_Waiting] = deque()

    @classmethod
    def for_plans(cls, folder: Path, dataset_id: DatasetId, plans: Iterable[SourcePlan]) -> KeyIndexes:
        """What these sources need, not yet brought up to date."""
        strategies = [plan.source.merge for plan in plans]
        keys = [tuple(merge.primary_key) for merge in strategies if isinstance(merge, MergeStrategyLedger)]
        return cls(folder / dataset_id.multibase, keys)

    def catch_up(self, chain: MetadataChain, objects: ObjectStore, vocabulary: DatasetVocabulary) -> None:
        """Read what the chain has and an index has not; anew from the beginning where it is not of this chain."""
        for primary_key in self._indexes:
            self._catch_up(primary_key, chain, objects, vocabulary)

    def for_source(self, plan: SourcePlan) -> _Known | None:
        """The keys that a source's records are compared with; None where its strategy needs none."""
        merge = plan.source.merge
        if not isinstance(merge, MergeStrategyLedger):
            return None
        key = tuple(merge.primary_key)
        return _Known(self._indexes[key], [waiting.keys[key] for waiting in self._waiting])

    def propose(self, rows: pa.Table, proposed: DataSlice) -> None:
        """Count the rows of a slice in before they are committed."""
        if self._indexes:
            keys = {key: set(_keys(rows, key)) for key in self._indexes}
            self._waiting.append(_Waiting(proposed, keys))

    def committed(self, next_offset: int) -> None:
        """Keep the keys of all slices that end before this offset."""
        while self._waiting and self._waiting[0].slice.offset_interval.end < next_offset:
            waiting = self._waiting.popleft()
            for key, index in self._indexes.items():
                index.add(waiting.keys[key], waiting.slice)

    def close(self) -> None:
        """Let go of all files."""
        for index in self._indexes.values():
            index.close()

    def _catch_up(
        self, primary_key: PrimaryKey, chain: MetadataChain, objects: ObjectStore, vocabulary: DatasetVocabulary
    ) -> None:
        index = self._indexes[primary_key]
        missing = _slices_after(chain, index)
        if missing is None:
            _log.warning("index does not belong to the chain as it is: making it anew", primary_key=primary_key)
            index = self._indexes[primary_key] = _emptied(index)
            missing = _slices_after(chain, index) or []
        for number, committed in enumerate(missing, 1):
            index.add(_keys_of_slice(objects, committed, primary_key, vocabulary), committed)
            if number % 100 == 0 or number == len(missing):
                _log.info("reading keys", primary_key=primary_key, slices=number, of=len(missing))


class _Known:
    """A KeyIndex: what is committed, and what waits for it."""

    def __init__(self, index: LedgerIndex, waiting: list[set[bytes]]) -> None:
        self._index = index
        self._waiting = waiting

    def contains(self, keys: Sequence[bytes]) -> list[bool]:
        """See `odf_common.ingest.merge.KeyIndex`."""
        found = self._index.contains(keys)
        if not self._waiting:
            return found
        return [known or any(key in some for some in self._waiting) for key, known in zip(keys, found, strict=True)]


def _options() -> Options:
    """Most lookups are for keys that are not there: a Bloom filter answers those without reading a block."""
    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(_BLOOM_BITS, block_based=False)
    blocks.set_block_cache(Cache(_CACHE_SIZE))
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    return options


def _opened(folder: Path, primary_key: PrimaryKey) -> LedgerIndex:
    path = folder / hashlib.sha256(json.dumps(primary_key).encode()).hexdigest()[:16]
    try:
        return LedgerIndex(path)
    except Exception as error:  # RocksDB knows no other type
        if not str(error).startswith("Corruption"):
            raise
        _log.warning("index is damaged: making it anew", path=str(path), error=str(error))
        shutil.rmtree(path)
        return LedgerIndex(path)


def _emptied(index: LedgerIndex) -> LedgerIndex:
    index.close()
    shutil.rmtree(index.path)
    return LedgerIndex(index.path)


def _slices_after(chain: MetadataChain, index: LedgerIndex) -> list[DataSlice] | None:
    """The slices that the index has not read, oldest first; None if the one it read last is not in the chain."""
    missing: list[DataSlice] = []
    for encoded in chain.blocks():
        event = encoded.block.event
        if not isinstance(event, AddData) or event.new_data is None:
            continue
        if event.new_data.offset_interval.end < index.next_offset:
            is_same = str(event.new_data.physical_hash) == index.last_slice
            return missing[::-1] if is_same else None
        missing.append(event.new_data)
    return missing[::-1] if index.next_offset == 0 else None


def _keys(rows: pa.Table | pa.RecordBatch, primary_key: PrimaryKey) -> Iterator[bytes]:
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    if all(name in table.column_names for name in primary_key):
        yield from ledger_keys(table, primary_key).drop_null().to_pylist()


def _keys_of_slice(
    objects: ObjectStore, committed: DataSlice, primary_key: PrimaryKey, vocabulary: DatasetVocabulary
) -> Iterator[bytes]:
    with objects.open_file(ObjectKind.DATA, committed.physical_hash) as file:
        names = {column.name for column in slice_schema(file).fields}
        if not names.issuperset(primary_key):
            return  # written before the column existed: a key with a null never matches
        file.seek(0)
        for batch in read_slice(file, columns=primary_key, vocabulary=vocabulary):
            yield from _keys(batch, primary_key)
