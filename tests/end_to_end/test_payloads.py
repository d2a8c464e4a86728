"""Payloads for real: uploads, pieces, event ids and polls, columns that come new, and time, through Kafka and Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE, FetchedState, PollNote, UploadedPayload
from odf_common.metadata.events import (
    AddData,
    AddPushSource,
    MetadataEvent,
    SetDataSchema,
    SetPollingSource,
    SetVocab,
)
from odf_common.metadata.sources import (
    FetchStepUrl,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStep,
    ReadStepNdJson,
)
from odf_common.repository.appending import append_events
from odf_common.repository.bindings import bind_missing_sources
from odf_common.timestamp import Timestamp
from odf_common.uploads import UploadArea
from tests.systems import COMMITTER, INGEST, IngestedDataset, RunningSystem, eventually, running_system

pytestmark = pytest.mark.slow

COLUMNS = ("event_time TIMESTAMP", "city STRING", "population BIGINT")
APPEND = MergeStrategyAppend()
SNAPSHOT = MergeStrategySnapshot(primary_key=("city",))
READ = ReadStepNdJson(ddl_schema=COLUMNS)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, module_kafka: str) -> Iterator[RunningSystem]:
    folder = tmp_path_factory.mktemp("system")
    with running_system(folder / "data", [COMMITTER, INGEST], kafka=module_kafka) as system:
        yield system


def a_source(name: str = "default", *, read: ReadStep = READ, merge: MergeStrategy = APPEND) -> AddPushSource:
    return AddPushSource(source_name=name, read=read, merge=merge)


def event(city: str, **more: Any) -> bytes:
    return json.dumps({"city": city, **more}).encode()


def lines(numbers: range) -> bytes:
    return b"".join(event(f"c{number}", population=number) + b"\n" for number in numbers)


def append(dataset: IngestedDataset, *events: MetadataEvent) -> None:
    append_events(dataset.system.repository, dataset.dataset.entry.id, events, Timestamp.now())


def upload(dataset: IngestedDataset, *parts: bytes, **more: Any) -> UploadedPayload:
    kept = UploadArea(dataset.system.settings.uploads_folder).write(dataset.dataset.entry.id, parts)
    fields = {"name": kept.name, "hash": kept.hash, "size": kept.size} | more
    return UploadedPayload(**fields)


def publish_upload(dataset: IngestedDataset, payload: UploadedPayload, **headers: str) -> None:
    dataset.publish(payload.to_json(), headers={"content-type": UPLOAD_MEDIA_TYPE} | headers)


def uploads_left(dataset: IngestedDataset) -> list[Path]:
    folder = dataset.system.settings.uploads_folder / dataset.dataset.entry.id.multibase
    return list(folder.glob("*"))


def changes(dataset: IngestedDataset) -> list[tuple[int, str]]:
    rows = dataset.rows()
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    return [(row["op"], row["city"]) for row in rows]


def states(dataset: IngestedDataset) -> list[KafkaOffsets]:
    found = [each.new_source_state for each in dataset.events() if isinstance(each, AddData)]
    return [offsets for state in found if state is not None and (offsets := KafkaOffsets.of_state(state)) is not None]


def test_an_upload_is_one_batch_in_several_slices(system: RunningSystem) -> None:
    dataset = system.add("uploads", a_source(), batch_bytes=64 << 10)
    dataset.publish(event("first"))
    dataset.wait_for_rows(1)
    publish_upload(dataset, upload(dataset, lines(range(5_000)), b"broken\n"))
    dataset.wait_for_rows(5_001)
    assert [(note.offset, note.index, value) for note, value in dataset.dead_letters()] == [(1, 5_000, b"broken")]
    eventually(lambda: not uploads_left(dataset))
    assert len([each for each in dataset.events() if isinstance(each, AddData)]) > 3
    dataset.verified()


def test_bad_uploads_are_dead_letters_that_can_be_sent_again(system: RunningSystem) -> None:
    dataset = system.add("bad.uploads", a_source())
    good = upload(dataset, event("a"))
    publish_upload(dataset, good.model_copy(update={"name": "0" * 32}))
    publish_upload(dataset, good.model_copy(update={"size": 5}))
    dataset.publish(b"{}", headers={"content-type": UPLOAD_MEDIA_TYPE})
    dataset.publish(b"x", headers={"content-type": "image/png"})
    dataset.wait_until_read()
    letters = [note for note, _ in dataset.dead_letters()]
    assert [note.code for note in letters] == ["UploadMissing", "UploadDamaged", "InvalidPayload", "WrongMediaType"]
    assert [note.content_type for note in letters] == [UPLOAD_MEDIA_TYPE] * 3 + ["image/png"]
    publish_upload(dataset, good)
    dataset.wait_for_rows(1)
    dataset.verified()


def test_a_snapshot_is_one_batch_however_it_came(system: RunningSystem) -> None:
    dataset = system.add("snapshot", a_source(merge=SNAPSHOT))
    dataset.publish(event("c", population=1) + b"\n" + event("a", population=1))
    dataset.wait_for_rows(2)
    for index, payload in enumerate([event("b"), event("c", population=2)]):
        own = {"odf-batch-id": "1", "odf-batch-index": str(index), "odf-batch-count": "2"}
        dataset.publish(payload, headers=own)
    dataset.wait_for_rows(6)
    assert changes(dataset) == [(0, "a"), (0, "c"), (1, "a"), (0, "b"), (2, "c"), (3, "c")]
    dataset.publish(event("x") + b"\n" + event("x"))  # contradicts itself
    publish_upload(dataset, upload(dataset, event("b") + b"\n" + event("c", population=3)))
    dataset.wait_for_rows(8)
    assert changes(dataset)[6:] == [(2, "c"), (3, "c")]
    assert [note.code for note, _ in dataset.dead_letters()] == ["DuplicateKeysInSnapshot"]
    shutil.rmtree(system.settings.data_dir / "index" / dataset.dataset.entry.id.multibase)
    system.kill("ingest")
    dataset.publish(event("b"))
    dataset.wait_for_rows(9)
    assert changes(dataset)[8:] == [(1, "c")]
    dataset.verified()


def test_an_event_id_counts_once_across_restarts(system: RunningSystem) -> None:
    dataset = system.add("once", a_source())
    ids = {"ce_id": "1", "ce_source": "/test"}
    dataset.publish(event("a"), event("a"), headers=ids)
    dataset.wait_until_read()
    system.kill("ingest")
    dataset.publish(event("a"), headers=ids)
    dataset.wait_until_read()
    shutil.rmtree(system.settings.data_dir / "index")
    system.kill("ingest")
    dataset.publish(event("a"), headers=ids)
    dataset.publish(event("b"), headers=ids | {"ce_id": "2"})
    dataset.wait_for_rows(2)
    assert changes(dataset) == [(0, "a"), (0, "b")]
    found = {repeat.offset: repeat for state in states(dataset) for repeat in state.repeats}
    assert {offset: repeat.first_offset for offset, repeat in found.items()} == {1: 0, 2: 0, 3: 0}
    assert found[2].block == found[3].block is not None
    assert sum(state.duplicates for state in states(dataset)) == 3
    dataset.verified()


def test_polls_build_on_each_other(system: RunningSystem) -> None:
    polling = SetPollingSource(fetch=FetchStepUrl(url="https://example.org/data.json"), read=READ, merge=SNAPSHOT)
    dataset = system.add("polled", polling)
    bind_missing_sources(system.repository.catalog, dataset.dataset.entry, dataset.state)
    first, second = (FetchedState(kind="odf/etag", value=text) for text in ("1", "2"))

    def poll(payload: bytes, expected: FetchedState | None, fetched: FetchedState | None) -> None:
        dataset.publish(payload, headers={"odf-poll": PollNote(expected=expected, fetched=fetched).to_json().decode()})

    poll(event("a"), None, first)
    poll(event("never"), None, first)
    poll(event("b"), first, second)
    dataset.wait_for_rows(3)
    dataset.wait_until_read()
    assert changes(dataset) == [(0, "a"), (1, "a"), (0, "b")]
    assert [state.fetched for state in states(dataset)] == [first, first, second]
    dataset.verified()


def test_columns_may_be_added_while_running(system: RunningSystem) -> None:
    dataset = system.add("evolving", a_source(), SetVocab(event_time_column="at"))
    pid = system.status("ingest").pid
    dataset.publish(event("a"))
    dataset.wait_for_rows(1)
    append(dataset, a_source(read=ReadStepNdJson(ddl_schema=(*COLUMNS, "area DOUBLE"))))
    # The dataset's run starts anew with the source; what comes before that has the old columns.
    eventually(lambda: _has_area(dataset))
    assert sum(isinstance(each, SetDataSchema) for each in dataset.events()) == 2
    assert system.status("ingest").pid == pid
    # A source that narrows a column: its records are dead letters, those of others go through.
    append(dataset, a_source("narrow", read=ReadStepNdJson(ddl_schema=("city STRING", "population INT"))))
    eventually(lambda: len(system.repository.catalog.push_sources(dataset.dataset.entry.id)) == 2)
    dataset.publish(event("bad"), source="narrow")
    dataset.publish(event("good"))
    dataset.wait_until_read("default", "narrow")
    assert [note.code for note, _ in dataset.dead_letters()] == ["IncompatibleSchema"]
    assert "bad" not in {row["city"] for row in dataset.rows()}
    assert dataset.binding("narrow").problem is None
    dataset.verified()


def _has_area(dataset: IngestedDataset) -> bool:
    dataset.publish(event("b", area=1.5))
    dataset.wait_until_read()
    return any(row.get("area") == 1.5 for row in dataset.rows())


def test_the_future_does_not_move_the_watermark(system: RunningSystem) -> None:
    dataset = system.add("guarded", a_source(), max_ahead_s=60.0)
    dataset.publish(event("a", event_time="2020-01-01T00:00:00Z"))
    dataset.wait_for_rows(1)
    dataset.publish(event("future", event_time="2999-01-01T00:00:00Z"), event("b", event_time="2020-01-02T00:00:00Z"))
    dataset.wait_for_rows(3)
    assert str(dataset.state.watermark) == "2020-01-02T00:00:00Z"
    dataset.publish(event("late", event_time="2019-01-01T00:00:00Z"), event("even", event_time="2020-01-02T00:00:00Z"))
    dataset.wait_for_rows(5)
    assert [state.late for state in states(dataset)][-1] == 1
    dataset.verified()


def test_a_source_that_is_off_goes_on_later(system: RunningSystem) -> None:
    dataset = system.add("switched", a_source("one"), a_source("two"))
    dataset.publish(event("a"), source="one")
    dataset.wait_for_rows(1)
    dataset.configure("one", enabled=False)
    # Settings are looked at once a second.
    eventually(lambda: not _is_read(dataset))
    dataset.publish(event("b"), source="two")
    dataset.wait_until_read("two")
    assert not dataset.has_read_all("one")
    dataset.configure("one", enabled=True)
    dataset.wait_until_read("one", "two")
    cities = [city for _, city in changes(dataset)]
    assert sorted(cities) == sorted(set(cities))
    dataset.verified()


_counter = iter(range(1_000))


def _is_read(dataset: IngestedDataset) -> bool:
    dataset.publish(event(f"n{next(_counter)}"), source="one")
    try:
        eventually(lambda: dataset.has_read_all("one"), within_s=3)
    except AssertionError:
        return False
    return True
