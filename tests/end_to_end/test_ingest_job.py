"""The ingest job for real: its process with Spark, a committer and a broker, and what becomes of messages."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from odf_common.kafka.clients import admin_client, producer
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData, AddPushSource, DisablePushSource, MetadataEvent, SetDataSchema
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategyUpsertStream,
    ReadStep,
    ReadStepCsv,
    ReadStepJson,
    ReadStepNdJson,
)
from odf_common.metadata.transforms import SqlQueryStep, TransformSql
from odf_common.repository.appending import append_events
from odf_common.timestamp import Timestamp
from services.cli.sources import _accept_gap
from services.cli.watermarks import watermark_events
from tests.systems import COMMITTER, INGEST, IngestedDataset, RunningSystem, eventually, running_system

pytestmark = pytest.mark.slow

COLUMNS = ("event_time TIMESTAMP", "city STRING", "population BIGINT", "area DOUBLE")
LEDGER = MergeStrategyLedger(primary_key=("city",))


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, module_kafka: str) -> Iterator[RunningSystem]:
    folder = tmp_path_factory.mktemp("system")
    with running_system(folder / "data", [COMMITTER, INGEST], kafka=module_kafka) as system:
        yield system


def a_source(
    name: str = "default",
    *,
    read: ReadStep | None = None,
    merge: MergeStrategy | None = None,
    preprocess: TransformSql | None = None,
) -> AddPushSource:
    return AddPushSource(
        source_name=name,
        read=read or ReadStepNdJson(ddl_schema=COLUMNS),
        merge=merge or MergeStrategyAppend(),
        preprocess=preprocess,
    )


def event(city: str, **more: Any) -> bytes:
    return json.dumps({"city": city, **more}).encode()


def cities(dataset: IngestedDataset) -> list[str]:
    rows = dataset.rows()
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    return [row["city"] for row in rows]


def append(dataset: IngestedDataset, *events: MetadataEvent) -> None:
    append_events(dataset.system.repository, dataset.dataset.entry.id, events, Timestamp.now())


def test_read_steps(system: RunningSystem) -> None:
    columns = ("city STRING", "population BIGINT")
    lines = system.add("lines", a_source(read=ReadStepNdJson(ddl_schema=columns)))
    array = system.add("array", a_source(read=ReadStepJson(sub_path="data.cities", ddl_schema=columns)))
    table = system.add("table", a_source(read=ReadStepCsv(header=True, ddl_schema=columns)))
    anything = system.add("anything", a_source(read=ReadStepNdJson()))
    many = b"\n".join(event(f"c{number}", population=number) for number in range(1_000))
    lines.publish(event("a", population=1), b'{"city":"b"}\n{"population":3}\n', many)
    array.publish(b'{"data":{"cities":[{"city":"a","population":1},{"city":"b"}]}}')
    table.publish(b'city,population\na,1\n"b\nc",2\n', b"population,city\n3,d\n")
    anything.publish(b'{"city":"a","event_time":"2020-01-01T00:00:00Z","deep":{"x":[1,2]}}')
    assert len(lines.wait_for_rows(1_003)) == 1_003
    assert [(row["city"], row["population"]) for row in array.wait_for_rows(2)] == [("a", 1), ("b", None)]
    assert [(row["city"], row["population"]) for row in table.wait_for_rows(3)][:2] == [("a", 1), ("b\nc", 2)]
    (row,) = anything.wait_for_rows(1)
    assert (row["event_time"], row["deep"]) == (datetime(2020, 1, 1, tzinfo=UTC), {"x": [1, 2]})
    anything.publish(b'{"city":"b","event_time":"2020-01-02T00:00:00Z","area":1.5}')
    assert anything.wait_for_rows(2)[1]["area"] == 1.5
    assert sum(isinstance(each, SetDataSchema) for each in anything.events()) == 2
    for dataset in (lines, array, table, anything):
        dataset.verified()


def test_any_cut_gives_the_same_rows(system: RunningSystem) -> None:
    """What a batch is compared with does not depend on where the one before it ended."""
    merges: tuple[MergeStrategy, ...] = (LEDGER, MergeStrategyUpsertStream(primary_key=("city",)))
    cuts = (1, 7, 100)
    datasets = {
        (merge.kind, cut): system.add(f"cut.{merge.kind}.{cut}", a_source(merge=merge), batch_rows=cut)
        for merge in merges
        for cut in cuts
    }
    # Each city comes twice, far enough apart that no cut has both: then a batch replaces nothing within itself.
    events = [
        event(f"c{number % 100}", event_time=f"2020-01-01T00:{number // 60:02}:{number % 60:02}Z", population=number)
        for number in range(200)
    ]
    for dataset in datasets.values():
        dataset.publish(*events)
    for dataset in datasets.values():
        dataset.wait_until_read()
        dataset.verified()
    for merge in merges:
        one, *others = ({rest_of(row) for row in datasets[merge.kind, cut].rows()} for cut in cuts)
        assert len(one) == (100 if merge is LEDGER else 300)
        assert all(other == one for other in others)


def rest_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row without what says where and when it was written."""
    return tuple(value for name, value in row.items() if name not in ("offset", "system_time"))


BAD: dict[str, bytes | None] = {
    "broken": b'{"city":"x"',
    "not an object": b"[1]",
    "wrong type": b'{"city":{"name":"x"}}',
    "text for a number": b'{"city":"x","population":"many"}',
    "invalid UTF-8": b'{"city":"\xff\xfe"}',
    "NaN": b'{"city":"x","area":NaN}',
    "2^63": b'{"city":"x","population":9223372036854775808}',
    "year 0": b'{"city":"x","event_time":"0000-01-01T00:00:00Z"}',
    "year 9999": b'{"city":"x","event_time":"9999-12-31T23:59:59.999Z"}',
    "nested": b'{"city":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "large": b'{"city":"' + b"x" * (10 << 20) + b'"}',
    "empty": b"",
    "tombstone": None,
}


def test_bad_input_among_good(system: RunningSystem) -> None:
    dataset = system.add("bad", a_source())
    good = [event("first"), event("last", population=2**63 - 1)]
    dataset.publish(good[0], *BAD.values(), *good[1:])
    dataset.wait_until_read()
    assert sorted(cities(dataset)) == ["first", "last"]
    letters = {note.offset: (note, value) for note, value in dataset.dead_letters()}
    assert sorted(letters) == list(range(1, len(BAD) + 1))
    for position, (name, value) in enumerate(BAD.items(), 1):
        note, kept = letters[position]
        assert kept == (value or b""), name
        assert note.reason, name
        assert (note.source_name, note.topic, note.partition) == ("default", dataset.binding().topic, 0)
    codes = {name: letters[position][0].code for position, name in enumerate(BAD, 1)}
    assert (codes["nested"], codes["large"], codes["empty"]) == ("TooDeep", "MessageTooLarge", "EmptyMessage")
    assert (codes["tombstone"], codes["invalid UTF-8"]) == ("Tombstone", "InvalidUtf8")
    (certificate,) = dataset.verified()["sources"]
    assert (certificate["records"], certificate["rows"], certificate["deadLetters"]) == (15, 2, 13)
    dataset.publish(event("after"))
    dataset.wait_for_rows(3)


def test_bad_records_within_a_message(system: RunningSystem) -> None:
    dataset = system.add("bad.lines", a_source())
    dataset.publish(event("a") + b"\nbroken\n" + event("b") + b'\n{"population":1.5}\n' + event("c"))
    assert {row["city"] for row in dataset.wait_for_rows(3)} == {"a", "b", "c"}
    assert [(note.offset, note.index) for note, _ in dataset.dead_letters()] == [(0, 1), (0, 3)]
    dataset.verified()


def test_preprocess_in_steps(system: RunningSystem) -> None:
    steps = (
        SqlQueryStep(alias="large", query="select * from input where population >= 10"),
        SqlQueryStep(query="select event_time, upper(city) as city, 100 div (population - 13) as share from large"),
    )
    transform = TransformSql(engine="spark", queries=steps)
    dataset = system.add("preprocessed", a_source(preprocess=transform))
    dataset.publish(event("a", population=5), event("b", population=14), b"broken", event("c", population=23))
    assert [(row["city"], row["share"]) for row in dataset.wait_for_rows(2)] == [("B", 100), ("C", 10)]
    # Division by zero: the query fails on one message only.
    dataset.publish(event("d", population=15), event("e", population=13), event("f", population=33))
    dataset.wait_until_read()
    assert cities(dataset) == ["B", "C", "D", "F"]
    assert [(note.offset, note.code) for note, _ in dataset.dead_letters()] == [
        (2, "InvalidJson"),
        (5, "PreprocessFailed"),
    ]
    dataset.verified()


def test_new_and_disabled_sources_are_noticed(system: RunningSystem) -> None:
    dataset = system.add("growing", a_source("one"))
    dataset.publish(event("a"), source="one")
    dataset.wait_for_rows(1)
    append(dataset, a_source("two"))
    eventually(lambda: len(system.repository.catalog.push_sources(dataset.dataset.entry.id)) == 2)
    dataset.publish(event("b"), source="two")
    dataset.publish(event("c"), source="one")
    dataset.wait_for_rows(3)
    append(dataset, DisablePushSource(source_name="one"))
    dataset.publish(event("not read"), source="one")
    dataset.publish(event("d"), source="two")
    dataset.wait_for_rows(4)
    assert sorted(cities(dataset)) == ["a", "b", "c", "d"]
    dataset.verified()


def test_watermarks(system: RunningSystem) -> None:
    dataset = system.add("late", a_source(), watermark_delay_s=60.0)
    dataset.publish(event("a", event_time="2020-01-01T00:10:00Z"))
    dataset.wait_for_rows(1)
    assert str(dataset.state.watermark) == "2020-01-01T00:09:00Z"
    by_hand = Timestamp.parse("2020-01-01T00:30:00Z")
    append_events(
        system.repository, dataset.dataset.entry.id, lambda chain: watermark_events(chain, by_hand), Timestamp.now()
    )
    dataset.publish(event("b", event_time="2020-01-01T00:20:00Z"))
    dataset.wait_for_rows(2)
    assert dataset.state.watermark == by_hand
    dataset.configure(watermark_delay_s=0.0)
    eventually(lambda: _publish_and_see_watermark(dataset, "2020-01-01T01:00:00Z"))
    dataset.verified()


def _publish_and_see_watermark(dataset: IngestedDataset, time: str) -> bool:
    """Settings are looked at once a second."""
    dataset.publish(event("c", event_time=time))
    dataset.wait_until_read()
    return str(dataset.state.watermark) == time


def test_batches_close_as_the_source_says(system: RunningSystem) -> None:
    dataset = system.add("sized", a_source(), batch_rows=100, batch_time_s=0.5, partitions=2)
    for partition in (0, 1):
        dataset.publish(*(event(f"{partition}/{number}") for number in range(550)), partition=partition)
    dataset.wait_for_rows(1_100)
    sizes = [
        each.new_data.offset_interval.end - each.new_data.offset_interval.start + 1
        for each in dataset.events()
        if isinstance(each, AddData) and each.new_data
    ]
    assert max(sizes) <= 100
    assert sum(sizes) == 1_100
    assert len(set(cities(dataset))) == 1_100
    dataset.verified()


def test_aborted_transactions_do_not_appear(system: RunningSystem) -> None:
    dataset = system.add("transactions", a_source())
    topic = dataset.binding().topic
    dataset.wait_for_topic(topic)
    sender = producer(system.servers, transactional_id="test")
    sender.init_transactions(30)
    for number, is_kept in enumerate((False, True, False, True, True, False)):
        sender.begin_transaction()
        sender.produce(topic, event(f"{number}a"))
        sender.produce(topic, event(f"{number}b"))
        sender.flush(30)
        (sender.commit_transaction if is_kept else sender.abort_transaction)(30)
    dataset.wait_for_rows(6)
    dataset.publish(event("last"))
    dataset.wait_for_rows(7)
    assert cities(dataset) == ["1a", "1b", "3a", "3b", "4a", "4b", "last"]
    dataset.verified()


def delete_topic(system: RunningSystem, topic: str) -> None:
    admin = admin_client(system.servers)  # kept: what it was asked for is not answered once it is gone
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)


def accept_gap(dataset: IngestedDataset, source: str = "default") -> None:
    """What `odf source resume --accept-gap` does."""
    binding = dataset.binding(source)
    settings = dataset.system.settings
    assert _accept_gap(settings, dataset.system.repository, binding)
    with dataset.system.repository.catalog.begin() as transaction:
        transaction.set_source_problem(binding.dataset_id, source, None)


def gaps(dataset: IngestedDataset) -> list[KafkaOffsets]:
    states = [each.new_source_state for each in dataset.events() if isinstance(each, AddData)]
    found = [KafkaOffsets.of_state(state) for state in states if state is not None]
    return [each for each in found if each is not None and each.accepted_gap is not None]


def test_a_topic_that_was_made_anew_stops_its_source(system: RunningSystem) -> None:
    dataset = system.add("replaced", a_source("one"), a_source("two"))
    dataset.publish(event("a"), event("b"), source="one")
    dataset.publish(event("c"), source="two")
    dataset.wait_for_rows(3)
    delete_topic(system, dataset.binding("one").topic)
    dataset.wait_for_problem("was deleted and created again", "one")
    dataset.publish(event("d"), source="two")
    dataset.wait_for_rows(4)
    dataset.publish(event("new"), source="one")  # the topic is there again
    accept_gap(dataset, "one")
    dataset.wait_for_rows(5)
    dataset.publish(event("newer"), source="one")
    dataset.wait_for_rows(6)
    assert cities(dataset)[4:] == ["new", "newer"]
    (mark,) = gaps(dataset)
    assert mark.accepted_gap is not None
    assert mark.accepted_gap.lost_next == {0: 2}
    assert dataset.verified()["sources"][0]["acceptedGaps"] + dataset.verified()["sources"][1]["acceptedGaps"] == 1


def test_retention_that_overtakes_stops_its_source(system: RunningSystem) -> None:
    from confluent_kafka import TopicPartition

    dataset = system.add("retained", a_source("one"), a_source("two"))
    dataset.publish(event("a"), source="one")
    dataset.publish(event("b"), source="two")
    dataset.wait_for_rows(2)
    # Messages come and go while nobody reads.
    ingest = system.status("ingest")
    job = psutil.Process(ingest.pid)
    for process in (family := [job, *job.children(recursive=True)]):
        process.send_signal(signal.SIGSTOP)
    topic = dataset.binding("one").topic
    dataset.publish(*map(event, ("lost 1", "lost 2", "kept")), source="one")
    admin = admin_client(system.servers)  # kept: what it was asked for is not answered once it is gone
    admin.delete_records([TopicPartition(topic, 0, 3)])[TopicPartition(topic, 0)].result(30)
    for process in family:
        process.send_signal(signal.SIGCONT)
    dataset.wait_for_problem("2 positions are lost", "one")
    dataset.publish(event("c"), source="two")
    dataset.wait_for_rows(3)
    accept_gap(dataset, "one")
    dataset.wait_for_rows(4)
    assert sorted(cities(dataset)) == ["a", "b", "c", "kept"]
    assert len(gaps(dataset)) == 1
    dataset.verified()


def test_checkpoints_of_spark_may_vanish(system: RunningSystem) -> None:
    dataset = system.add("scratch", a_source())
    dataset.publish(event("a"))
    dataset.wait_for_rows(1)
    for folder in [*Path("/dev/shm").glob("odf-checkpoint-*"), *Path("/tmp").glob("odf-checkpoint-*")]:
        if belongs_to_the_job(system, folder):
            shutil.rmtree(folder, ignore_errors=True)
    for number in range(3):
        dataset.publish(event(f"b{number}"))
        dataset.wait_for_rows(2 + number)
    assert cities(dataset) == ["a", "b0", "b1", "b2"]
    dataset.verified()


def belongs_to_the_job(system: RunningSystem, folder: Path) -> bool:
    """Other tests have checkpoints as well: ours are younger than our process."""
    pid = system.status("ingest").pid
    assert pid is not None
    return folder.stat().st_mtime >= psutil.Process(pid).create_time()


def test_keys_are_known_across_batches_and_restarts(system: RunningSystem) -> None:
    dataset = system.add("ledger", a_source(merge=LEDGER))
    dataset.publish(event("a"), event("b"))
    dataset.wait_for_rows(2)  # rows of one batch are not compared with each other
    dataset.publish(event("b"), event("c"))
    dataset.wait_until_read()
    system.kill("ingest", signal.SIGTERM)
    dataset.publish(event("c"), event("d"), event("a"))
    dataset.wait_for_rows(4)
    assert sorted(cities(dataset)) == ["a", "b", "c", "d"]
    shutil.rmtree(system.settings.data_dir / "index")
    system.kill("ingest")
    dataset.publish(event("d"), event("e"))
    dataset.wait_for_rows(5)
    dataset.wait_until_read()
    assert sorted(cities(dataset)) == ["a", "b", "c", "d", "e"]
    (certificate,) = dataset.verified()["sources"]
    assert certificate["duplicates"] == certificate["records"] - 5
