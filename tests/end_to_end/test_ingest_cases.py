"""What ingestion must make of input, through Kafka and Spark: every case of the facts at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.data.slices import read_slice
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.messages.payload import CONTENT_TYPE_HEADER
from odf_common.metadata.events import AddData, MetadataEvent
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from tests.ingest_cases import CASES, Case, rows_of
from tests.systems import COMMITTER, INGEST, IngestedDataset, running_system

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Ingested:
    """A case and the dataset that came of it, once everything was pushed."""

    case: Case
    dataset: IngestedDataset


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, module_kafka: str) -> Iterator[dict[str, Ingested]]:
    """All cases side by side: the n-th payloads of all of them are pushed once the ones before are committed."""
    folder = tmp_path_factory.mktemp("system")
    with running_system(folder / "data", [COMMITTER, INGEST], kafka=module_kafka) as system:
        found = {
            case.name: Ingested(case, system.add(f"case.n{number}", *case.events)) for number, case in enumerate(CASES)
        }
        for turn in range(max(len(case.pushes) for case in CASES)):
            taking = [each for each in found.values() if turn < len(each.case.pushes)]
            for each in taking:
                push = each.case.pushes[turn]
                headers = {} if push.media_type is None else {CONTENT_TYPE_HEADER: push.media_type}
                each.dataset.publish(push.data, headers=headers, time=push.event_time)
            for each in taking:
                each.dataset.wait_until_read()
        yield found


def test_the_cases(ingested: dict[str, Ingested], subtests: pytest.Subtests) -> None:
    """One test, so that one worker of a parallel run starts the system, and once."""
    for name, each in ingested.items():
        with subtests.test(name):
            check_rows(each.case, each.dataset)
            check_balance(each.dataset)
    with subtests.test("the schema comes first also without rows"):
        check_schema_without_rows(
            ingested["an empty payload with a known schema says no more than that"].dataset.events()
        )
    with subtests.test("all rows of a block have its system time"):
        check_system_times(ingested["snapshot: the worked example"].dataset)


def check_rows(case: Case, dataset: IngestedDataset) -> None:
    letters = [note.code for note, _ in sorted(dataset.dead_letters(), key=lambda each: each[0].offset)]
    assert letters == [code for push in case.pushes for code in push.dead_letters]
    assert rows_of(case, dataset.rows()) == [tuple(row) for row in case.rows]
    if case.watermark is not None:
        assert dataset.state.watermark == Timestamp.parse(case.watermark)
    dataset.verified()


def check_balance(dataset: IngestedDataset) -> None:
    """Each record is accounted for in its block."""
    for event in dataset.events():
        if isinstance(event, AddData):
            assert event.new_source_state is not None
            offsets = KafkaOffsets.of_state(event.new_source_state)
            assert offsets is not None
            data = event.new_data
            rows = 0 if data is None else data.offset_interval.end - data.offset_interval.start + 1
            assert offsets.records + offsets.derived == rows + offsets.duplicates + offsets.dead_letters


def check_schema_without_rows(events: list[MetadataEvent]) -> None:
    kinds = [event.kind for event in events]
    assert kinds.index("SetDataSchema") < kinds.index("AddData")
    first = next(event for event in events if isinstance(event, AddData))
    assert first.new_data is None
    assert kinds.count("SetDataSchema") == 1


def check_system_times(dataset: IngestedDataset) -> None:
    for encoded in MetadataChain(dataset.dataset.objects, dataset.dataset.refs).blocks():
        data: Any = getattr(encoded.block.event, "new_data", None)
        if data is not None:
            with dataset.dataset.objects.open_file(ObjectKind.DATA, data.physical_hash) as file:
                times = {row["system_time"] for batch in read_slice(file) for row in batch.to_pylist()}
            assert {int(time.timestamp() * 1000) for time in times} == {encoded.block.system_time.ns // 1_000_000}
