"""The ingest job is killed at each of its steps while events are published: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from odf_common.kafka.clients import producer
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import MergeStrategyAppend, MergeStrategyLedger, ReadStepNdJson
from services.supervisor import restarts
from tests.systems import (
    COMMITTER,
    INGEST,
    CrashPoints,
    IngestedDataset,
    RunningSystem,
    eventually,
    running_system,
)

pytestmark = pytest.mark.slow

POINTS = ["job.after-slice:2", "job.after-completion:3", "job.after-dead-letters"]
"""With a batch for many messages; `test_strategies` has all points, with one for each."""
EVERY = 10
"""One event in so many cannot be read, one is repeated."""


def a_source(merge: MergeStrategyAppend | MergeStrategyLedger) -> AddPushSource:
    read = ReadStepNdJson(ddl_schema=("event_time TIMESTAMP", "id BIGINT"))
    return AddPushSource(source_name="default", read=read, merge=merge)


class Publishing:
    """Publishes numbered events, some of which are broken, until it is stopped."""

    def __init__(self, datasets: list[IngestedDataset], per_second: float) -> None:
        self.count = 0
        self._datasets = datasets
        self._pause_s = 1 / per_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        for dataset in self._datasets:
            dataset.wait_for_topic(dataset.binding().topic)
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()

    def _run(self) -> None:
        sender = producer(self._datasets[0].system.servers)
        topics = [dataset.binding().topic for dataset in self._datasets]
        while not self._stopping.wait(self._pause_s):
            value = json.dumps({"id": self.count}).encode()
            for topic in topics:
                sender.produce(topic, b"broken" if self.count % EVERY == 0 else value)
                if self.count % EVERY == 1:
                    sender.produce(topic, value)
            sender.poll(0)
            self.count += 1
        assert sender.flush(60) == 0


def check(dataset: IngestedDataset, published: int, *, repeated: bool) -> None:
    """Every published event is there exactly once, or a dead letter."""
    dataset.wait_until_read()
    found = dataset.verified()
    rows = dataset.rows()
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    ids = [row["id"] for row in rows]
    good = [number for number in range(published) if number % EVERY]
    twice = [number for number in good if number % EVERY == 1]
    assert sorted(set(ids)) == good
    if repeated:
        assert sorted(ids) == sorted(good + twice)
    broken = len(range(0, published, EVERY))
    (certificate,) = found["sources"]
    assert certificate["deadLetters"] == len(dataset.dead_letters()) == broken
    assert certificate["records"] == published + len(twice)
    assert certificate["rows"] + certificate["duplicates"] == published + len(twice) - broken


def kill_spark(system: RunningSystem) -> None:
    """The virtual machine beside the job dies: the job ends, and is started again."""
    before = system.status("ingest")
    java = [each for each in psutil.Process(before.pid).children(recursive=True) if "java" in each.name()]
    assert java
    for process in java:
        process.kill()
    eventually(lambda: system.status("ingest").restarts > before.restarts)
    system.wait_ready("ingest")


def test_it_is_killed_at_each_step(tmp_path: Path, module_kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "LONGEST_DELAY_S", 0.5)
    crashes = CrashPoints(INGEST, tmp_path / "crashes", POINTS)
    services = [COMMITTER, crashes.dying]
    with running_system(tmp_path / "data", services, kafka=module_kafka, on_change=crashes.on_change) as system:
        plain = system.add("plain", a_source(MergeStrategyAppend()))
        ledger = system.add("ledger", a_source(MergeStrategyLedger(primary_key=("id",))))
        publishing = Publishing([plain, ledger], per_second=100)
        with publishing.running():
            eventually(lambda: crashes.is_over, lambda: f"never came to {crashes.left}", within_s=400)
            system.wait_ready("ingest")
            assert system.status("ingest").restarts == len(POINTS)
            kill_spark(system)
        check(plain, publishing.count, repeated=True)
        check(ledger, publishing.count, repeated=False)
