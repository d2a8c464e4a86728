"""Tells everyone of new blocks: what the journal says, in its order, at least once (docs/decisions/0009-commit.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from odf_common.catalog.records import REF_MOVED, Epoch, JournalEntry, JournalRecord
from odf_common.errors import CorruptedError, NotFoundError
from odf_common.identity.multihash import Multihash
from odf_common.messages.appending import appended_block
from odf_common.messages.block_appended import BlockAppended
from odf_common.repository.repository import Repository
from odf_common.storage.layout import HEAD
from odf_common.wire.encoded_block import EncodedBlock
from services.committer.history import new_blocks

_log = logging.getLogger("committer.outbox")

_PAGE = 500
_BLOCKS_IN_FLIGHT = 10_000
_MARKS_AT_ONCE = 5_000

Tell = Callable[[BlockAppended], None]
"""Sends one notification, without waiting for it."""


class Outbox:
    """Publishes the blocks of every head that moved, whoever moved it.

    `wait` returns when all that `tell` was given is safe with the broker. Ids of the journal become visible in their
    order, so what lies behind the last one seen is new.
    """

    def __init__(self, repository: Repository, *, epoch: Epoch, tell: Tell, wait: Callable[[], None]) -> None:
        self._repository = repository
        self._epoch = epoch
        self._tell = tell
        self._wait = wait
        self._last_id = 0
        self._unmarked: list[int] = []

    def publish(self, recent: Mapping[Multihash, EncodedBlock]) -> int:
        """Tell what is new in the journal; returns the number of blocks. FencedError if another committer does so now.

        `recent` are blocks just written, which need not be read again.
        """
        told = 0
        while True:
            self._repository.catalog.check_epoch(self._epoch)
            entries = self._repository.catalog.pending_journal(limit=_PAGE, after=self._last_id)
            damaged = set()
            for entry in entries:
                try:
                    told += self._publish(entry, recent)
                except CorruptedError as error:
                    # Telling the others matters more. It stays in the journal, so the next process tries again.
                    _log.error("blocks of dataset %s cannot be told: %s", entry.record.dataset_id, error)
                    damaged.add(entry.id)
            self._wait()
            self._unmarked.extend(entry.id for entry in entries if entry.id not in damaged)
            if entries:
                self._last_id = entries[-1].id
            if len(entries) < _PAGE:
                return told

    @property
    def has_marks(self) -> bool:
        """Whether `mark` has something to do."""
        return bool(self._unmarked)

    def mark(self) -> None:
        """Note in the catalog what was told, so that the next process does not tell it again."""
        while self._unmarked:
            self._repository.catalog.mark_published(self._unmarked[:_MARKS_AT_ONCE])
            del self._unmarked[:_MARKS_AT_ONCE]

    def _publish(self, entry: JournalEntry, recent: Mapping[Multihash, EncodedBlock]) -> int:
        move = _head_move(entry.record)
        if move is None:
            return 0
        told = 0
        try:
            for events in _batched(self._events(entry.record, *move, recent)):
                for event in events:
                    self._tell(event)
                told += len(events)
                if len(events) == _BLOCKS_IN_FLIGHT:
                    self._wait()
        except NotFoundError:
            _log.info("dataset %s was deleted: its last blocks are not told", entry.record.dataset_id)
        return told

    def _events(
        self, record: JournalRecord, old: Multihash | None, new: Multihash, recent: Mapping[Multihash, EncodedBlock]
    ) -> Iterator[BlockAppended]:
        dataset = self._repository.catalog.dataset(record.dataset_id)
        objects = self._repository.folder_of(dataset).objects
        for block in new_blocks(objects, recent, old=old, new=new):
            yield BlockAppended.of(appended_block(dataset.id, dataset.alias, block))


def _head_move(record: JournalRecord) -> tuple[Multihash | None, Multihash] | None:
    """From where to where the head moved; None for records that tell of something else."""
    if record.kind != REF_MOVED or record.payload.get("ref") != HEAD:
        return None
    old = record.payload.get("oldBlockHash")
    return None if old is None else Multihash.parse(old), Multihash.parse(record.payload["newBlockHash"])


def _batched(events: Iterator[BlockAppended]) -> Iterator[list[BlockAppended]]:
    while batch := list(islice(events, _BLOCKS_IN_FLIGHT)):
        yield batch
