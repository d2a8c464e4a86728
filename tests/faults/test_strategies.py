"""The ingest job is killed at each of its steps, with every merge strategy: the same rows come of it as without."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from odf_common.ingest.trial import Trial
from odf_common.kafka.clients import producer
from odf_common.messages.payload import BATCH_COUNT_HEADER, BATCH_ID_HEADER, BATCH_INDEX_HEADER, EVENT_ID_HEADER
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepNdJson,
)
from odf_common.timestamp import Timestamp
from services.supervisor import restarts
from tests.systems import COMMITTER, INGEST, CrashPoints, IngestedDataset, eventually, running_system

pytestmark = pytest.mark.slow

POINTS = [
    "job.before-slice:2",
    "job.after-slice:3",
    "job.after-completion:2",
    "job.before-dead-letters",
    "job.after-dead-letters:2",
    "job.after-slice",
    "job.before-ids:3",
]
KEY = ("id",)
STRATEGIES: dict[str, MergeStrategy] = {
    "ledger": MergeStrategyLedger(primary_key=KEY),
    "snapshot": MergeStrategySnapshot(primary_key=KEY),
    "changelog": MergeStrategyChangelogStream(primary_key=KEY),
    "upsert": MergeStrategyUpsertStream(primary_key=KEY),
}
FIRST_TIME = Timestamp.parse("2000-01-01T00:00:00Z")


def a_source(merge: MergeStrategy) -> AddPushSource:
    has_operation = merge.kind in ("ChangelogStream", "UpsertStream")
    columns = ("event_time TIMESTAMP", *(("op INT",) if has_operation else ()), "id BIGINT", "value STRING")
    return AddPushSource(source_name="default", read=ReadStepNdJson(ddl_schema=columns), merge=merge)


def payload(number: int) -> bytes:
    """The n-th message, the same for all datasets and whenever it is asked for; one in six has a record without key."""
    random = Random(number)
    ids = random.sample(range(8), random.randint(1, 6))
    records: list[dict[str, Any]] = [
        {
            "event_time": str(event_time(number)),
            "op": random.choice((0, 0, 0, 1)),
            "id": key,
            "value": random.choice("ab"),
        }
        for key in ids
    ]
    if number % 6 == 5:
        records.append({"value": "no key", "op": 0})
    return b"\n".join(json.dumps(record).encode() for record in records)


def alone(number: int) -> dict[str, str | bytes | None]:
    """The headers of a payload in one piece: a batch of its own, so that no cut decides what it replaces in itself."""
    in_one_piece = {BATCH_ID_HEADER: str(number), BATCH_INDEX_HEADER: "0", BATCH_COUNT_HEADER: "1"}
    return {**in_one_piece, EVENT_ID_HEADER: str(number)}


def event_time(number: int) -> Timestamp:
    return FIRST_TIME.plus_seconds(60 * number)


@contextmanager
def publishing(datasets: list[IngestedDataset], per_second: float) -> Iterator[Callable[[], int]]:
    """Publishes payload after payload to all; what it gives tells how many, once it is over."""
    for dataset in datasets:
        dataset.wait_for_topic(dataset.binding().topic)
    topics = [dataset.binding().topic for dataset in datasets]
    stopping, count = threading.Event(), 0

    def run() -> None:
        nonlocal count
        sender = producer(datasets[0].system.servers)
        while not stopping.wait(1 / per_second):
            for topic in topics:
                time_ms = event_time(count).ns // 1_000_000
                sender.produce(topic, payload(count), timestamp=time_ms, headers=alone(count))
            sender.poll(0)
            count += 1
        assert sender.flush(60) == 0

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: count
    finally:
        stopping.set()
        thread.join()


def expected_rows(dataset: IngestedDataset, payloads: int) -> list[dict[str, Any]]:
    """What comes of the payloads one after another, and nothing going wrong."""
    source = dataset.state.source("default")
    assert source is not None
    chain = dataset.state.model_copy(update={"data_schema": None})
    trial = Trial(chain, source)
    rows: list[dict[str, Any]] = []
    for number in range(payloads):
        taken = trial.take(io.BytesIO(payload(number)), event_time=event_time(number), system_time=FIRST_TIME)
        rows += [row for table in taken.rows for row in table.to_pylist()]
    return rows


def without_system_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "system_time"} for row in rows]


def test_it_is_killed_at_each_step(tmp_path: Path, module_kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "LONGEST_DELAY_S", 0.5)
    crashes = CrashPoints(INGEST, tmp_path / "crashes", POINTS)
    services = [COMMITTER, crashes.dying]
    with running_system(tmp_path / "data", services, kafka=module_kafka, on_change=crashes.on_change) as system:
        datasets = {name: system.add(name, a_source(merge)) for name, merge in STRATEGIES.items()}
        with publishing(list(datasets.values()), per_second=2) as published:
            eventually(lambda: crashes.is_over, lambda: f"never came to {crashes.left}", within_s=400)
            system.wait_ready("ingest")
        for name, dataset in datasets.items():
            dataset.wait_until_read()
            dataset.verified()
            found, wanted = (
                without_system_time(dataset.rows()),
                without_system_time(expected_rows(dataset, published())),
            )
            assert found == wanted, name
