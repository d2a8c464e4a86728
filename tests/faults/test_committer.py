"""A committer is killed at each of its steps, doubled, or given its completions in disorder: one chain, all told."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.multihash import Multihash
from odf_common.metadata.events import SetInfo
from odf_common.repository.repository import Dataset
from odf_common.service_process import DO_NOT_RESTART
from odf_common.wire.encode import seal
from services.broker import EmbeddedBroker
from tests.committers import (
    Installation,
    checked,
    has_been_told,
    hashes,
    in_order_without_repetition,
    installation,
)
from tests.streams import Publisher, create_dataset

pytestmark = pytest.mark.slow

POINTS = ["before-data", "after-data", "after-blocks", "after-ref", "after-notify"]
BATCHES = 12
BLOCKS = 2 + 1 + BATCHES  # Seed, source, schema
LAST = BLOCKS - 1


@pytest.fixture
def system(tmp_path: Path, module_kafka: str) -> Iterator[Installation]:
    with installation(tmp_path / "data", module_kafka) as system:
        yield system


@pytest.fixture
def dataset(system: Installation) -> Dataset:
    return create_dataset(system.repository, "cities")


@pytest.fixture
def publisher(system: Installation, dataset: Dataset) -> Publisher:
    return Publisher(dataset.entry.id, system.settings.staging_folder)


def check_all_told(system: Installation, dataset: Dataset) -> None:
    told = system.told(dataset, has_been_told(dataset, LAST))
    assert in_order_without_repetition(told) == hashes(dataset)
    found = checked(dataset)
    assert (found.blocks, found.slices, found.records) == (BLOCKS, BATCHES, 3 * BATCHES)


@pytest.mark.parametrize("point", POINTS)
def test_it_is_killed(system: Installation, dataset: Dataset, publisher: Publisher, point: str) -> None:
    batches = publisher.batches_of(BATCHES)
    half = BATCHES // 2
    system.propose(batches[:half], key=dataset.entry.id)
    # When it starts, it tells of the blocks that the dataset began with: the second time is that of the batches.
    times = 2 if point == "after-notify" else 1
    with system.committer(crash_at=f"committer.{point}:{times}") as committer:
        assert committer.exit_code() == -signal.SIGKILL
    system.propose(batches[half:], key=dataset.entry.id)
    with system.committer() as committer:
        check_all_told(system, dataset)
        assert committer.stop() == 0


def test_two_at_once_make_one_chain(system: Installation, dataset: Dataset, publisher: Publisher) -> None:
    batches = publisher.batches_of(BATCHES)
    with system.committer() as older:
        assert older.ready()
        system.propose(batches[:4], key=dataset.entry.id)
        system.told(dataset, has_been_told(dataset, 4))
        with system.committer() as later:
            system.propose(batches[4:], key=dataset.entry.id)
            assert later.ready()
            assert older.exit_code() == DO_NOT_RESTART
            assert "another one took over" in older.log.read_text()
            check_all_told(system, dataset)
            assert later.stop() == 0


@pytest.mark.parametrize("seed", range(3))
def test_disorder_makes_the_same_chain(system: Installation, tmp_path: Path, seed: int) -> None:
    """Completions twice, shuffled, and some only after a restart."""
    key_pair = KeyPair.generate()
    dataset = create_dataset(system.repository, "cities", key_pair=key_pair)
    batches = Publisher(dataset.entry.id, system.settings.staging_folder).batches_of(BATCHES)
    chance = random.Random(seed)
    delivery = [*batches, *chance.choices(batches, k=BATCHES)]
    chance.shuffle(delivery)
    held_back = batches[0] if seed else batches[-1]
    system.propose([batch for batch in delivery if batch is not held_back], key=dataset.entry.id)
    with system.committer() as first:
        assert first.ready()
        if not seed:
            system.told(dataset, has_been_told(dataset, LAST - 1))
        assert first.stop() == 0
    system.propose([held_back], key=dataset.entry.id)
    with system.committer() as second:
        check_all_told(system, dataset)
        assert second.stop() == 0
    assert hashes(dataset) == in_order(system, key_pair, tmp_path)


def in_order(system: Installation, key_pair: KeyPair, folder: Path) -> list[Multihash]:
    """The chain that the same batches make when each comes once and in its turn."""
    with installation(folder / "expected", system.brokers) as quiet:
        dataset = create_dataset(quiet.repository, "cities", key_pair=key_pair)
        batches = Publisher(dataset.entry.id, quiet.settings.staging_folder).batches_of(BATCHES)
        with quiet.committer() as committer:
            assert committer.ready()
            quiet.propose(batches, key=dataset.entry.id)
            quiet.told(dataset, lambda told: [each.data.sequence_number for each in told].count(LAST) >= 2)
            assert committer.stop() == 0
        return hashes(dataset)


def test_a_broker_that_comes_late_is_waited_for(tmp_path: Path, module_kafka: str) -> None:
    with installation(tmp_path / "data", module_kafka) as system:
        nobody = Installation(system.settings, "127.0.0.1:1", system.repository)
        with nobody.committer() as committer:
            while "waiting for the broker" not in committer.log.read_text():
                assert committer.child.poll() is None
            assert committer.stop() == 0


def test_a_broker_that_dies_is_waited_for(tmp_path: Path, own_broker: EmbeddedBroker) -> None:
    with installation(tmp_path / "data", own_broker.bootstrap_servers) as system:
        dataset = create_dataset(system.repository, "cities")
        batches = Publisher(dataset.entry.id, system.settings.staging_folder).batches_of(BATCHES)
        with system.committer() as committer:
            assert committer.ready()
            system.propose(batches[:4], key=dataset.entry.id)
            system.told(dataset, has_been_told(dataset, 4))
            own_broker.kill()
            append_by_hand(dataset)
            own_broker.start()
            system.propose(batches[4:], key=dataset.entry.id)
            told = system.told(dataset, has_been_told(dataset, BLOCKS))
            assert in_order_without_repetition(told) == hashes(dataset)
            assert committer.stop() == 0


def append_by_hand(dataset: Dataset) -> None:
    chain = MetadataChain(dataset.objects, dataset.refs)
    state = chain.state()
    assert state.system_time is not None
    chain.append([seal(next_block(state, SetInfo(description="by hand"), system_time=state.system_time))])
