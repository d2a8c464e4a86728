from __future__ import annotations

import pytest

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import ChainState
from odf_common.errors import AppendRefusedError, RefCASFailedError
from odf_common.metadata.events import DisablePushSource, MetadataEvent, SetInfo
from odf_common.repository.appending import append_events, without_rows
from odf_common.repository.repository import Dataset, Repository
from tests.unit.odf_common.repository.snapshots import NOON, a_snapshot, a_source, create


@pytest.fixture
def dataset(repository: Repository) -> Dataset:
    return create(repository, a_snapshot(a_source()))


def state_of(dataset: Dataset) -> ChainState:
    return MetadataChain(dataset.objects, dataset.refs).state()


def test_events_are_appended_with_one_move(repository: Repository, dataset: Dataset) -> None:
    before = len(repository.catalog.pending_journal(limit=100))
    hashes = append_events(repository, dataset.entry.id, [SetInfo(description="a"), SetInfo(description="b")], NOON)
    assert state_of(dataset).head == hashes[-1]
    assert len(repository.catalog.pending_journal(limit=100)) == before + 1


def test_nothing_to_append_moves_nothing(repository: Repository, dataset: Dataset) -> None:
    assert append_events(repository, dataset.entry.id, lambda chain: [], NOON) == ()


def test_a_refused_event_leaves_none_behind(repository: Repository, dataset: Dataset) -> None:
    head = state_of(dataset).head
    with pytest.raises(AppendRefusedError):
        append_events(
            repository, dataset.entry.id, [SetInfo(description="a"), DisablePushSource(source_name="x")], NOON
        )
    assert state_of(dataset).head == head


def test_who_comes_second_decides_again_on_the_chain_as_it_is(repository: Repository, dataset: Dataset) -> None:
    seen = []

    def decide(chain: ChainState) -> list[MetadataEvent]:
        seen.append(chain.head)
        if len(seen) == 1:
            append_events(repository, dataset.entry.id, [SetInfo(description="first")], NOON)
        return [SetInfo(description="second")]

    append_events(repository, dataset.entry.id, decide, NOON)
    assert len(set(seen)) == 2
    assert state_of(dataset).sequence_number == 3


def test_the_tries_are_bounded(repository: Repository, dataset: Dataset) -> None:
    def decide(chain: ChainState) -> list[MetadataEvent]:
        append_events(repository, dataset.entry.id, [SetInfo(description=str(chain.head))], NOON)
        return [SetInfo(description="never")]

    with pytest.raises(RefCASFailedError):
        append_events(repository, dataset.entry.id, decide, NOON, tries=3)
    assert state_of(dataset).sequence_number == 4


def test_system_time_does_not_go_back(repository: Repository, dataset: Dataset) -> None:
    append_events(repository, dataset.entry.id, [SetInfo(description="a")], NOON.plus_seconds(-5))
    assert state_of(dataset).system_time == NOON


def test_a_watermark_alone_continues_the_chain(repository: Repository, dataset: Dataset) -> None:
    append_events(
        repository, dataset.entry.id, lambda chain: [without_rows(chain, watermark=NOON, source_state=None)], NOON
    )
    assert state_of(dataset).watermark == NOON
