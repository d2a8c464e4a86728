"""Carries decisions out: many completions, one wait for the disk, one transaction (docs/decisions/0009-commit.md)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from odf_common.catalog.records import Epoch, RefMove
from odf_common.crash_points import crash_point
from odf_common.errors import CorruptedError, NotFoundError, RefCASFailedError, StoreUnavailableError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.messages.completion import Completion, Rejection, RejectionReason
from odf_common.metadata.fragments import DataSlice
from odf_common.repository.repository import Repository
from odf_common.staging import staged_slice
from odf_common.storage.layout import HEAD, ObjectKind
from odf_common.storage.ports import ObjectStore
from odf_common.wire.encoded_block import EncodedBlock
from services.committer.chains import OpenChain, OpenChains
from services.committer.plan import Plan, plan, rejection
from services.committer.waiting_room import Received, WaitingRoom

_log = logging.getLogger("committer")

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 2.0


@dataclass(slots=True)
class Outcome:
    """What became of a group of completions."""

    committed: int = 0
    repeated: int = 0
    blocks: dict[Multihash, EncodedBlock] = field(default_factory=dict)
    """The new blocks, which are in their chains now."""
    moved: list[OpenChain] = field(default_factory=list)
    """The chains that got them."""
    rejections: list[Rejection] = field(default_factory=list)


@dataclass(slots=True)
class _Work:
    """One dataset's part of a group: the chain as it was, and what to do."""

    chain: OpenChain
    plan: Plan
    received: Sequence[Received]


class Committer:
    """Commits groups of completions: each once, whatever happens, and in the order of its chain.

    Nothing is remembered that could be wrong: the heads are asked for with each group, and the transaction fails as a
    whole if one of them moves meanwhile. Then all is decided again.
    """

    def __init__(
        self,
        repository: Repository,
        staging: Path,
        *,
        epoch: Epoch,
        waiting: WaitingRoom,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._repository = repository
        self._staging = staging
        self._epoch = epoch
        self._waiting = waiting
        self._chains = OpenChains(repository)
        self._pause = pause

    def handle(self, group: Sequence[Received], *, now: float) -> Outcome:
        """Commit what can be committed; what came early waits. FencedError if another committer has taken over.

        Without a group, those who wait are looked at once more.
        """
        by_dataset = self._by_dataset(group)
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return self._attempt(by_dataset, now)
            except (RefCASFailedError, NotFoundError, StoreUnavailableError) as error:
                # A head moved, a dataset or slice went away, or an answer was lost: the next look at the catalog tells.
                _log.warning("deciding again on %d datasets: %s", len(by_dataset), error)
            self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _by_dataset(self, group: Sequence[Received]) -> dict[DatasetId, list[Received]]:
        """Those who wait, and behind them who arrives."""
        ids = dict.fromkeys(each.completion.dataset_id for each in group) or self._waiting.datasets()
        by_dataset = {dataset_id: list(self._waiting.of(dataset_id)) for dataset_id in ids}
        for each in group:
            by_dataset[each.completion.dataset_id].append(each)
        return by_dataset

    def _attempt(self, by_dataset: dict[DatasetId, list[Received]], now: float) -> Outcome:
        outcome = Outcome()
        works = self._decide(by_dataset, outcome, now)
        moving = self._store([work for work in works if work.plan.blocks])
        if moving:
            self._repository.commit_moves([_move(work) for work in moving], epoch=self._epoch)
            crash_point("committer.after-ref")
        # Only now is it sure that nothing is decided again: take note of everything.
        for work in moving:
            outcome.moved.append(self._chains.moved(work.chain, work.plan.chain))
            outcome.committed += len(work.plan.committed)
            outcome.blocks.update((block.hash, block) for block in work.plan.blocks)
        for work in works:
            self._settle(work, outcome, now)
        return outcome

    def _decide(self, by_dataset: dict[DatasetId, list[Received]], outcome: Outcome, now: float) -> list[_Work]:
        heads = self._chains.heads(by_dataset)
        works = []
        for dataset_id, received in by_dataset.items():
            try:
                head = heads.get(dataset_id)
                chain = None if head is None else self._chains.at(dataset_id, head)
            except CorruptedError as error:
                _log.error("dataset %s cannot be read, its batches are refused: %s", dataset_id, error)
                self._turn_away(dataset_id, received, RejectionReason.REFUSED, str(error), outcome)
                continue
            except StoreUnavailableError as error:
                _log.warning("dataset %s cannot be read, its batches wait: %s", dataset_id, error)
                self._hold(dataset_id, received, outcome, now)
                continue
            if chain is None:
                reason = RejectionReason.NO_DATASET
                self._turn_away(dataset_id, received, reason, f"there is no dataset {dataset_id}", outcome)
                continue
            works.append(
                _Work(chain, plan(chain.state, received, missing_slice=self._missing_slice(chain.objects)), received)
            )
        return works

    def _turn_away(
        self,
        dataset_id: DatasetId,
        received: Iterable[Received],
        reason: RejectionReason,
        message: str,
        outcome: Outcome,
    ) -> None:
        self._waiting.seat(dataset_id, (), now=0)
        outcome.rejections.extend(rejection(each.completion, reason, message) for each in received)

    def _store(self, works: list[_Work]) -> list[_Work]:
        """Make data and blocks durable; returns the datasets where that worked, the others wait."""
        if not works:
            return works
        crash_point("committer.before-data")
        works = [work for work in works if _works(work, self._put_slices)]
        crash_point("committer.after-data")
        works = [work for work in works if _works(work, _put_blocks)]
        try:
            self._repository.sync(work.chain.entry for work in works)
        except StoreUnavailableError:
            works = [work for work in works if _works(work, _sync)]
        crash_point("committer.after-blocks")
        return works

    def _put_slices(self, work: _Work) -> None:
        for done in work.plan.committed:
            for data in done.slices:
                path = staged_slice(self._staging, done.dataset_id, data.physical_hash)
                work.chain.objects.put_file(ObjectKind.DATA, data.physical_hash, path)

    def _missing_slice(self, objects: ObjectStore) -> Callable[[Completion], DataSlice | None]:
        """Tells which slice of a completion is neither staged nor, from before a crash, in its place."""

        def is_there(done: Completion, data: DataSlice) -> bool:
            path = staged_slice(self._staging, done.dataset_id, data.physical_hash)
            with suppress(OSError):
                return path.stat().st_size == data.size
            with suppress(NotFoundError):
                return objects.size(ObjectKind.DATA, data.physical_hash) == data.size
            return False

        return lambda done: next((data for data in done.slices if not is_there(done, data)), None)

    def _settle(self, work: _Work, outcome: Outcome, now: float) -> None:
        outcome.repeated += len(work.plan.repeated)
        outcome.rejections.extend(work.plan.rejections)
        for done in work.plan.repeated:
            self._discard_slices(done)
        self._hold(work.chain.entry.id, work.plan.early, outcome, now)

    def _hold(self, dataset_id: DatasetId, early: Iterable[Received], outcome: Outcome, now: float) -> None:
        for each in self._waiting.seat(dataset_id, early, now=now):
            message = "a batch before this one is missing, and it waited too long or there is no room to wait"
            outcome.rejections.append(rejection(each.completion, RejectionReason.STALE, message))

    def _discard_slices(self, done: Completion) -> None:
        """What was staged again for a batch that is in the chain is of no use to anybody."""
        for data in done.slices:
            with suppress(OSError):
                staged_slice(self._staging, done.dataset_id, data.physical_hash).unlink()


def _works(work: _Work, step: Callable[[_Work], None]) -> bool:
    """Do a step for one dataset. If its storage does not answer, its completions wait, and the others go on."""
    try:
        step(work)
    except StoreUnavailableError as error:
        _log.warning("the storage of dataset %s does not answer: %s", work.chain.entry.id, error)
        work.plan = Plan(work.chain.state, early=list(work.received))
        return False
    return True


def _put_blocks(work: _Work) -> None:
    for block in work.plan.blocks:
        work.chain.objects.put_block(block.hash, block.data)


def _sync(work: _Work) -> None:
    work.chain.objects.sync()


def _move(work: _Work) -> RefMove:
    head = work.chain.state.head
    return RefMove(dataset_id=work.chain.entry.id, name=HEAD, expected=head, new=work.plan.blocks[-1].hash)
