"""The committer alone, with a real broker: how fast queued completions become blocks that everybody knows of, and how
long a single one takes.

    python -m benchmarks.committer
    ODF_KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 python -m benchmarks.committer
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import print_figure
from odf_common.catalog.catalog import Catalog
from odf_common.identity.did import DatasetId
from odf_common.kafka.clients import admin_client, consumer, producer
from odf_common.kafka.topics import BLOCKS, COMPLETIONS, SERVICE_TOPICS, create_topics
from odf_common.messages.completion import Completion
from odf_common.repository.repository import Repository
from odf_common.settings import Settings
from tests.streams import Publisher, create_dataset

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

QUEUED = 5_000
DATASETS = 10
SINGLE = 200
PER_SECOND = 15
TIMEOUT_S = 120.0


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as brokers:
        create_topics(admin_client(brokers), SERVICE_TOPICS)
        for name, datasets in (("one dataset", 1), ("ten datasets", DATASETS)):
            rate = throughput(Path(folder, f"{datasets}"), brokers, datasets)
            print_figure(f"committer, {QUEUED} queued completions of {name}", rate, "blocks/s", goal=">= 500")
        p50, p99 = latency(Path(folder, "single"), brokers)
        print_figure("committer, completion to notification, p50", p50, "ms", goal="<= 40", rate=PER_SECOND)
        print_figure("committer, completion to notification, p99", p99, "ms", goal="<= 150", rate=PER_SECOND)


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The Kafka that is given, or one of our own."""
    given = os.environ.get("ODF_KAFKA_BOOTSTRAP_SERVERS")
    if given is not None:
        yield given
        return
    command = [sys.executable, "-m", "services.broker"]
    with process(command, {"ODF_DATA_DIR": str(folder / "broker")}, folder / "broker.log") as ready:
        yield ready["bootstrapServers"]


@contextlib.contextmanager
def process(command: Sequence[str], env: dict[str, str], log: Path) -> Iterator[dict[str, str]]:
    """A child process that serves; gives what it says when it is ready."""
    with (
        log.open("ab") as errors,
        subprocess.Popen(command, env=os.environ | env, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
    ):
        assert child.stdout is not None
        try:
            line = child.stdout.readline()
            if not line:
                raise SystemExit(f"{' '.join(command)} did not start:\n{log.read_text()[-2000:]}")
            yield json.loads(line)
        finally:
            child.terminate()
            child.wait(30)


@contextlib.contextmanager
def datasets(folder: Path, count: int) -> Iterator[list[Publisher]]:
    """New datasets below a data folder, each with a publisher."""
    settings = Settings(data_dir=folder)
    folder.mkdir(parents=True)
    with Catalog.open(settings.catalog_url) as catalog:
        repository = Repository.at(settings.repository_location, catalog)
        ids = [create_dataset(repository, f"bench{number}").entry.id for number in range(count)]
    yield [Publisher(dataset_id, settings.staging_folder) for dataset_id in ids]


def committer(folder: Path, brokers: str) -> contextlib.AbstractContextManager[dict[str, str]]:
    """A committer on a data folder."""
    env = {"ODF_DATA_DIR": str(folder), "ODF_KAFKA_BOOTSTRAP_SERVERS": brokers}
    return process([sys.executable, "-m", "services.committer"], env, folder / "committer.log")


def throughput(folder: Path, brokers: str, number_of_datasets: int) -> float:
    """Blocks of data per second, from the first notification of one to the last, with all completions queued before."""
    with datasets(folder, number_of_datasets) as publishers:
        sender = producer(brokers)
        for number in range(QUEUED):
            send(sender, publishers[number % number_of_datasets].batch(2))
        sender.flush()
        with listening(brokers) as listener, committer(folder, brokers):
            start = time.perf_counter()
            await_blocks(listener, {each.dataset_id for each in publishers}, QUEUED)
            return QUEUED / (time.perf_counter() - start)


def latency(folder: Path, brokers: str) -> tuple[float, float]:
    """Milliseconds from producing a completion to consuming its notification, at a steady rate."""
    with datasets(folder, 1) as (publisher,):
        batches = publisher.batches_of(SINGLE + PER_SECOND)
        sender = producer(brokers)
        taken = []
        with listening(brokers) as listener, committer(folder, brokers):
            await_created(listener, publisher.dataset_id)
            for batch in batches:
                start = time.perf_counter()
                send(sender, batch)
                sender.poll(0)
                await_blocks(listener, {publisher.dataset_id}, 1)
                taken.append((time.perf_counter() - start) * 1000)
                time.sleep(max(0, start + 1 / PER_SECOND - time.perf_counter()))
    taken = sorted(taken[PER_SECOND:])
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)]


def send(sender: Producer, batch: Completion) -> None:
    """Propose a batch."""
    sender.produce(COMPLETIONS, batch.to_json(), str(batch.dataset_id))


@contextlib.contextmanager
def listening(brokers: str) -> Iterator[Consumer]:
    """A consumer of notifications from now on."""
    from confluent_kafka import TopicPartition

    listener = consumer(brokers, group="bench", fetch_wait_max_ms=500)
    _, end = listener.get_watermark_offsets(TopicPartition(BLOCKS, 0), timeout=30)
    listener.assign([TopicPartition(BLOCKS, 0, end)])
    try:
        yield listener
    finally:
        listener.close()


def await_created(listener: Consumer, dataset_id: DatasetId) -> None:
    """Wait for the blocks that the dataset began with."""
    await_blocks(listener, {dataset_id}, 1, kind="AddPushSource")


def await_blocks(listener: Consumer, ids: set[DatasetId], count: int, *, kind: str = "AddData") -> None:
    """Wait for so many notifications."""
    keys = {str(dataset_id).encode() for dataset_id in ids}
    wanted = f'"eventKind":"{kind}"'.encode()
    end = time.monotonic() + TIMEOUT_S
    while count:
        if time.monotonic() > end:
            raise SystemExit(f"{count} notifications did not come within {TIMEOUT_S} s")
        message = listener.poll(1.0)
        if message is not None and message.error() is None and message.key() in keys:
            count -= wanted in (message.value() or b"")


if __name__ == "__main__":
    main()
