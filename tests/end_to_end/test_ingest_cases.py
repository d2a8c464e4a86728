"""What ingestion must make of input, through Kafka and Spark: every case of the facts at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import TypeAdapter

from odf_common.data.slices import read_slice
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.messages.payload import CONTENT_TYPE_HEADER
from odf_common.metadata.events import AddData, MetadataEvent, SetDataSchema
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from tests.ingest_cases import CASES, Case, rows_of
from tests.systems import COMMITTER, INGEST, IngestedDataset, running_system

pytestmark = pytest.mark.slow

_EVENT: TypeAdapter[MetadataEvent] = TypeAdapter(MetadataEvent)


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
            case.name: Ingested(
                case, system.add(f"case.n{number}", *(_EVENT.validate_python(event) for event in case.metadata))
            )
            for number, case in enumerate(CASES)
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


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_the_rows_are_as_they_must_be(name: str, ingested: dict[str, Ingested]) -> None:
    case, dataset = ingested[name].case, ingested[name].dataset
    letters = [note.code for note, _ in sorted(dataset.dead_letters(), key=lambda each: each[0].offset)]
    assert letters == [code for push in case.pushes for code in push.dead_letters]
    assert rows_of(case, dataset.rows()) == [tuple(row) for row in case.rows]
    if case.watermark is not None:
        assert dataset.state.watermark == Timestamp.parse(case.watermark)
    dataset.verified()


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_each_record_is_accounted_for(name: str, ingested: dict[str, Ingested]) -> None:
    dataset = ingested[name].dataset
    for event in dataset.events():
        if isinstance(event, AddData):
            state = event.new_source_state
            assert state is not None
            offsets = KafkaOffsets.of_state(state)
            assert offsets is not None
            data = event.new_data
            rows = 0 if data is None else data.offset_interval.end - data.offset_interval.start + 1
            assert offsets.records + offsets.derived == rows + offsets.duplicates + offsets.dead_letters


def test_the_schema_comes_first_also_without_rows(ingested: dict[str, Ingested]) -> None:
    events = ingested["an empty payload with a known schema says no more than that"].dataset.events()
    kinds = [event.kind for event in events]
    assert kinds.index("SetDataSchema") < kinds.index("AddData")
    first = next(event for event in events if isinstance(event, AddData))
    assert first.new_data is None
    assert sum(isinstance(event, SetDataSchema) for event in events) == 1


def test_all_rows_of_a_block_have_its_system_time(ingested: dict[str, Ingested]) -> None:
    from odf_common.chain.metadata_chain import MetadataChain

    dataset = ingested["snapshot: the worked example"].dataset
    for encoded in MetadataChain(dataset.dataset.objects, dataset.dataset.refs).blocks():
        data: Any = getattr(encoded.block.event, "new_data", None)
        if data is not None:
            with dataset.dataset.objects.open_file(ObjectKind.DATA, data.physical_hash) as file:
                times = {row["system_time"] for batch in read_slice(file) for row in batch.to_pylist()}
            assert {int(time.timestamp() * 1000) for time in times} == {encoded.block.system_time.ns // 1_000_000}
