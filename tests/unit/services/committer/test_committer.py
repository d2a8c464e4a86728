"""Groups of completions become blocks: whatever fails on the way, each once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.errors import FencedError
from odf_common.chain.check import CheckedDataset, check_dataset
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.errors import StoreUnavailableError
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.multihash import Multihash
from odf_common.messages.completion import Completion, RejectionReason
from odf_common.metadata.events import DisablePushSource, SetInfo
from odf_common.repository.repository import Dataset, Repository
from odf_common.staging import staged_slice, staging_folder
from odf_common.storage.folder_objects import FolderObjects
from odf_common.wire.encode import seal
from services.committer.committer import Committer, Outcome
from services.committer.waiting_room import Received, RoomLimits, WaitingRoom
from tests.streams import Publisher, create_dataset


class Bench:
    """A committer without Kafka."""

    def __init__(self, repository: Repository, staging: Path) -> None:
        with repository.catalog.begin() as transaction:
            self.epoch = transaction.begin_epoch("committer")
        self.waiting = WaitingRoom(RoomLimits(seconds=30))
        self.pauses: list[float] = []
        self.committer = Committer(
            repository, staging, epoch=self.epoch, waiting=self.waiting, pause=self.pauses.append
        )
        self.position = 0

    def handle(self, *batches: Completion, now: float = 0.0) -> Outcome:
        group = []
        for batch in batches:
            group.append(Received(batch, 0, self.position, 100, now))
            self.position += 1
        return self.committer.handle(group, now=now)


@pytest.fixture
def bench(repository: Repository, staging: Path) -> Bench:
    return Bench(repository, staging)


@pytest.fixture
def dataset(repository: Repository) -> Dataset:
    return create_dataset(repository, "cities")


@pytest.fixture
def publisher(dataset: Dataset, staging: Path) -> Publisher:
    return Publisher(dataset.entry.id, staging)


def checked(dataset: Dataset) -> CheckedDataset:
    return check_dataset(dataset.objects, dataset.refs)


def hashes(dataset: Dataset) -> list[Multihash]:
    return [block.hash for block in MetadataChain(dataset.objects, dataset.refs).blocks()][::-1]


def reasons(outcome: Outcome) -> list[RejectionReason]:
    return [answer.reason for answer in outcome.rejections]


def append(dataset: Dataset, event: Any) -> None:
    """Another writer, such as the command line, appends a block."""
    chain = MetadataChain(dataset.objects, dataset.refs)
    state = chain.state()
    assert state.system_time is not None
    chain.append([seal(next_block(state, event, system_time=state.system_time))])


def test_a_group_becomes_blocks_with_one_move(
    bench: Bench, dataset: Dataset, publisher: Publisher, catalog: Catalog
) -> None:
    before = len(catalog.pending_journal(limit=100))
    outcome = bench.handle(*publisher.batches_of(5))
    assert (outcome.committed, len(outcome.blocks), outcome.rejections) == (5, 6, [])
    assert len(catalog.pending_journal(limit=100)) == before + 1
    found = checked(dataset)
    assert (found.blocks, found.slices, found.records) == (8, 5, 15)


def test_many_datasets_are_one_transaction(repository: Repository, staging: Path, bench: Bench) -> None:
    datasets = [create_dataset(repository, f"d{number}") for number in range(5)]
    publishers = [Publisher(dataset.entry.id, staging) for dataset in datasets]
    with mock.patch.object(Catalog, "begin", autospec=True, side_effect=Catalog.begin) as begin:
        outcome = bench.handle(*(publisher.batch() for publisher in publishers for _ in range(2)))
    assert begin.call_count == 1
    assert outcome.committed == 10
    assert [checked(dataset).records for dataset in datasets] == [6] * 5


def test_slices_leave_the_staging_area(bench: Bench, publisher: Publisher, staging: Path) -> None:
    bench.handle(*publisher.batches_of(3))
    assert list(staging_folder(staging, publisher.dataset_id).iterdir()) == []


def test_the_next_group_reads_no_block(bench: Bench, publisher: Publisher) -> None:
    bench.handle(publisher.batch())
    with mock.patch.object(FolderObjects, "get_block", side_effect=AssertionError):
        assert bench.handle(publisher.batch()).committed == 1


def test_a_repeated_completion_changes_nothing(bench: Bench, dataset: Dataset, publisher: Publisher) -> None:
    batches = publisher.batches_of(3)
    bench.handle(*batches, *batches)
    before = hashes(dataset)
    outcome = bench.handle(*batches)
    assert (outcome.repeated, outcome.rejections, hashes(dataset)) == (3, [], before)


def test_a_slice_that_was_staged_again_is_discarded(bench: Bench, dataset: Dataset, staging: Path) -> None:
    first, second = (Publisher(dataset.entry.id, staging).batch() for _ in range(2))
    bench.handle(first)
    again = Publisher(dataset.entry.id, staging).batch()
    assert again == second == first
    bench.handle(again)
    assert list(staging_folder(staging, dataset.entry.id).iterdir()) == []


class TestWaiting:
    def test_an_early_one_waits_for_its_predecessor(self, bench: Bench, publisher: Publisher) -> None:
        first, second, third = publisher.batches_of(3)
        outcome = bench.handle(third, second)
        assert (outcome.committed, outcome.rejections, len(bench.waiting)) == (0, [], 2)
        assert bench.handle(first).committed == 3
        assert len(bench.waiting) == 0

    def test_it_does_not_wait_for_ever(self, bench: Bench, publisher: Publisher) -> None:
        _, second = publisher.batches_of(2)
        bench.handle(second, now=0)
        assert bench.handle(now=29).rejections == []
        assert reasons(bench.handle(now=30)) == [RejectionReason.STALE]
        assert len(bench.waiting) == 0

    def test_nobody_waits_for_a_dataset_that_was_deleted(
        self, bench: Bench, publisher: Publisher, repository: Repository
    ) -> None:
        _, second = publisher.batches_of(2)
        bench.handle(second)
        repository.delete(publisher.dataset_id)
        assert reasons(bench.handle()) == [RejectionReason.NO_DATASET]
        assert len(bench.waiting) == 0


class TestOtherWriters:
    def test_a_block_between_two_groups(self, bench: Bench, dataset: Dataset, publisher: Publisher) -> None:
        bench.handle(publisher.batch())
        append(dataset, SetInfo(description="by hand"))
        assert bench.handle(publisher.batch()).committed == 1
        assert checked(dataset).records == 6

    def test_a_block_during_the_commit(
        self, bench: Bench, dataset: Dataset, publisher: Publisher, repository: Repository, staging: Path
    ) -> None:
        """The other dataset of the group is committed as well."""
        other = create_dataset(repository, "other")
        commit_moves = Repository.commit_moves
        others = iter([SetInfo(description="by hand")])

        def late(self: Repository, *arguments: Any, **options: Any) -> None:
            for event in others:
                append(dataset, event)
            commit_moves(self, *arguments, **options)

        with mock.patch.object(Repository, "commit_moves", late):
            outcome = bench.handle(publisher.batch(), Publisher(other.entry.id, staging).batch())
        assert (outcome.committed, outcome.rejections) == (2, [])
        assert (checked(dataset).records, checked(other).records) == (3, 3)
        assert len(bench.pauses) == 1

    def test_a_source_disabled_between(self, bench: Bench, dataset: Dataset, publisher: Publisher) -> None:
        bench.handle(publisher.batch())
        append(dataset, DisablePushSource(source_name="default"))
        assert reasons(bench.handle(publisher.batch())) == [RejectionReason.SOURCE_INACTIVE]

    def test_a_later_committer_fences_this_one(
        self, bench: Bench, dataset: Dataset, publisher: Publisher, repository: Repository, staging: Path
    ) -> None:
        later = Bench(repository, staging)
        batch = publisher.batch()
        before = hashes(dataset)
        with pytest.raises(FencedError):
            bench.handle(batch)
        assert hashes(dataset) == before
        assert later.handle(batch).committed == 1
        assert checked(dataset).records == 3


class TestTrouble:
    def test_no_dataset(self, bench: Bench, staging: Path) -> None:
        stranger = Publisher(KeyPair.generate().dataset_id, staging)
        assert reasons(bench.handle(stranger.batch())) == [RejectionReason.NO_DATASET]

    def test_no_slice(self, bench: Bench, publisher: Publisher, staging: Path) -> None:
        batch = publisher.batch()
        assert batch.add_data.new_data is not None
        staged_slice(staging, batch.dataset_id, batch.add_data.new_data.physical_hash).unlink()
        assert reasons(bench.handle(batch)) == [RejectionReason.MISSING_SLICE]

    def test_a_slice_that_was_cut_short(self, bench: Bench, publisher: Publisher, staging: Path) -> None:
        batch = publisher.batch()
        assert batch.add_data.new_data is not None
        staged_slice(staging, batch.dataset_id, batch.add_data.new_data.physical_hash).write_bytes(b"cut")
        assert reasons(bench.handle(batch)) == [RejectionReason.MISSING_SLICE]

    def test_a_damaged_chain_does_not_stop_the_others(
        self,
        bench: Bench,
        dataset: Dataset,
        publisher: Publisher,
        repository: Repository,
        staging: Path,
        tmp_path: Path,
    ) -> None:
        head = dataset.refs.get("head")
        (tmp_path / "datasets" / dataset.entry.location / "blocks" / str(head)).write_bytes(b"damaged")
        other = create_dataset(repository, "other")
        outcome = bench.handle(publisher.batch(), Publisher(other.entry.id, staging).batch())
        assert reasons(outcome) == [RejectionReason.REFUSED]
        assert outcome.committed == 1

    def test_a_storage_that_does_not_answer_does_not_stop_the_others(
        self, bench: Bench, dataset: Dataset, publisher: Publisher, repository: Repository, staging: Path
    ) -> None:
        other = create_dataset(repository, "other")
        put_block = FolderObjects.put_block

        def put(self: FolderObjects, block_hash: Multihash, data: bytes) -> None:
            if dataset.entry.location in repr(self):
                raise StoreUnavailableError("the disk is gone")
            put_block(self, block_hash, data)

        with mock.patch.object(FolderObjects, "put_block", put):
            outcome = bench.handle(publisher.batch(), Publisher(other.entry.id, staging).batch())
        assert (outcome.committed, outcome.rejections, len(bench.waiting)) == (1, [], 1)
        assert bench.handle().committed == 1
        assert checked(dataset).records == 3

    def test_a_sync_that_fails_keeps_its_dataset_back(
        self, bench: Bench, dataset: Dataset, publisher: Publisher, repository: Repository, staging: Path
    ) -> None:
        other = create_dataset(repository, "other")
        sync = FolderObjects.sync

        def fail(self: FolderObjects, *arguments: Any) -> None:
            if dataset.entry.location in repr(self):
                raise StoreUnavailableError("the disk is gone")
            sync(self, *arguments)

        with mock.patch.object(FolderObjects, "sync", fail):
            outcome = bench.handle(publisher.batch(), Publisher(other.entry.id, staging).batch())
        assert (outcome.committed, len(bench.waiting)) == (1, 1)
        assert bench.handle().committed == 1

    @pytest.mark.parametrize("happened", [False, True])
    def test_a_lost_answer_of_the_catalog(
        self, bench: Bench, dataset: Dataset, publisher: Publisher, happened: bool
    ) -> None:
        commit_moves = Repository.commit_moves
        answers = iter([StoreUnavailableError("the answer got lost")])

        def lose(self: Repository, *arguments: Any, **options: Any) -> None:
            error = next(answers, None)
            if happened or error is None:
                commit_moves(self, *arguments, **options)
            if error is not None:
                raise error

        with mock.patch.object(Repository, "commit_moves", lose):
            outcome = bench.handle(*publisher.batches_of(2))
        assert outcome.rejections == []
        assert outcome.committed + outcome.repeated == 2
        assert checked(dataset).records == 6


@pytest.fixture(scope="module")
def key_pair() -> KeyPair:
    return KeyPair.generate()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> list[Multihash]:
    return committed(tmp_path_factory.mktemp("expected"), key_pair, range(6), 1)


class TestDelivery:
    """The same completions lead to the same blocks, however they are delivered."""

    DELIVERIES: Sequence[Sequence[int]] = (
        (0, 1, 2, 3, 4, 5),
        (5, 4, 3, 2, 1, 0),
        (0, 0, 1, 1, 2, 0, 3, 4, 2, 5, 5),
        (3, 1, 0, 5, 2, 4, 1, 3),
    )

    @pytest.mark.parametrize("size", [1, 3, 100])
    @pytest.mark.parametrize("delivery", DELIVERIES)
    def test_of_groups_of_any_size(
        self, tmp_path: Path, delivery: Sequence[int], size: int, key_pair: KeyPair, expected: list[Multihash]
    ) -> None:
        assert committed(tmp_path, key_pair, delivery, size) == expected


def committed(folder: Path, key_pair: KeyPair, delivery: Sequence[int], size: int) -> list[Multihash]:
    """The chain after completions that come in groups."""
    with Catalog.open(f"sqlite:///{folder}/catalog.db") as catalog:
        repository = Repository.at(folder / "datasets", catalog)
        dataset = create_dataset(repository, "cities", key_pair=key_pair)
        batches = Publisher(dataset.entry.id, folder / "staging").batches_of(6)
        bench = Bench(repository, folder / "staging")
        for start in range(0, len(delivery), size):
            outcome = bench.handle(*(batches[number] for number in delivery[start : start + size]))
            assert outcome.rejections == []
        assert checked(dataset).records == 18
        return hashes(dataset)


def test_a_crash_at_any_step_leaves_what_can_be_committed(
    repository: Repository, staging: Path, dataset: Dataset, publisher: Publisher
) -> None:
    """As a crash, an exception that nobody expects: at each crash point, then a new committer on the same topic."""
    batches = publisher.batches_of(4)
    points = ["before-data", "after-data", "after-blocks", "after-ref"]
    for batch, point in zip(batches, points, strict=True):
        with (
            mock.patch("services.committer.committer.crash_point", lambda name, at=point: die(name, at)),
            suppress(KeyboardInterrupt),
        ):
            Bench(repository, staging).handle(batch)
        Bench(repository, staging).handle(*batches[: batches.index(batch) + 1])
    found = checked(dataset)
    assert (found.records, found.slices) == (12, 4)


def die(name: str, at: str) -> None:
    if name == f"committer.{at}":
        raise KeyboardInterrupt
