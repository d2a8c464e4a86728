"""Completions in, blocks and notifications out, with a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.messages.completion import RejectionReason
from odf_common.metadata.events import AddData, SetInfo
from odf_common.repository.repository import Dataset
from odf_common.storage.layout import HEAD
from odf_common.wire.encode import seal
from tests.committers import (
    ROOT,
    Installation,
    checked,
    has_been_told,
    hashes,
    in_order_without_repetition,
    installation,
)
from tests.streams import START, Publisher, create_dataset, take_turns

pytestmark = pytest.mark.slow


@pytest.fixture
def system(tmp_path: Path, module_kafka: str) -> Iterator[Installation]:
    with installation(tmp_path / "data", module_kafka) as system:
        yield system


@pytest.fixture
def dataset(system: Installation) -> Dataset:
    return create_dataset(system.repository, "acme/cities", sources=("one", "two"))


def publisher(system: Installation, dataset: Dataset, source: str = "one") -> Publisher:
    return Publisher(dataset.entry.id, system.settings.staging_folder, source=source)


def append(dataset: Dataset, event: Any) -> None:
    chain = MetadataChain(dataset.objects, dataset.refs)
    state = chain.state()
    assert state.system_time is not None
    chain.append([seal(next_block(state, event, system_time=state.system_time))])


def test_batches_of_two_sources_become_blocks_that_are_told(system: Installation, dataset: Dataset) -> None:
    batches = list(take_turns([publisher(system, dataset), publisher(system, dataset, "two")], 20))
    with system.committer() as committer:
        assert committer.ready()
        system.propose(batches, key=dataset.entry.id)
        told = system.told(dataset, has_been_told(dataset, 23))
        assert committer.stop() == 0
    assert in_order_without_repetition(told) == hashes(dataset)
    assert checked(dataset).records == 60
    folder = system.repository.folder_of(dataset.entry)
    assert folder.refs.get(HEAD) == dataset.refs.get(HEAD)
    assert system.repository.catalog.pending_journal(limit=10) == []

    event = told[-1]
    assert (event.subject, event.data.event_kind) == ("acme/cities", "AddData")
    assert (event.data.num_records, event.data.watermark) == (3, START.plus_seconds(20))
    assert event.data.offset_interval is not None
    assert (event.data.offset_interval.start, event.data.offset_interval.end) == (57, 59)
    assert event.data.source is not None
    assert (event.data.source.name, event.data.source.start, event.data.source.next) == ("two", {0: 27}, {0: 30})


def test_blocks_of_other_processes_are_told_too(system: Installation, dataset: Dataset) -> None:
    with system.committer() as committer:
        assert committer.ready()
        append(dataset, SetInfo(description="by hand"))
        told = system.told(dataset, has_been_told(dataset, 3))
        assert told[-1].data.event_kind == "SetInfo"
        append(dataset, AddData(new_watermark=START.plus_seconds(500)))
        system.propose([publisher(system, dataset).batch()], key=dataset.entry.id)
        told = system.told(dataset, has_been_told(dataset, 6))
        assert told[-1].data.watermark == START.plus_seconds(500)
        assert committer.stop() == 0


def test_what_cannot_be_committed_is_answered(system: Installation, dataset: Dataset) -> None:
    good = publisher(system, dataset).batch()
    stranger = publisher(system, dataset, "three").batch()
    broken = json.dumps({"id": "broken", "datasetId": str(dataset.entry.id)}).encode()
    with system.committer() as committer:
        assert committer.ready()
        values = [b"", b"nonsense", b"[]", broken, stranger.to_json(), good.to_json()]
        system.send(values, key=dataset.entry.id)
        system.told(dataset, has_been_told(dataset, 4))
        answers = system.rejections(dataset, lambda found: len(found) >= 2)
        assert committer.stop() == 0
    assert {(answer.completion_id, answer.reason) for answer in answers} == {
        ("broken", RejectionReason.REFUSED),
        (stranger.id, RejectionReason.SOURCE_INACTIVE),
    }


def test_help_says_how_to_start_it() -> None:
    command = [sys.executable, "-m", "services.committer", "--help"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "Example:" in shown
