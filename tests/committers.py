"""Committers as processes beside a real broker: what tests of faults and of whole ways share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import tests
from odf_common.catalog.catalog import Catalog
from odf_common.chain.check import CheckedDataset, check_dataset
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.crash_points import CRASH_AT
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.kafka.clients import admin_client, consumer, producer
from odf_common.kafka.topics import BLOCKS, COMPLETIONS, REJECTIONS, SERVICE_TOPICS, create_topics
from odf_common.messages.base import Message
from odf_common.messages.block_appended import BlockAppended
from odf_common.messages.completion import Rejection
from odf_common.repository.repository import Dataset, Repository
from odf_common.settings import Settings

ROOT = Path(tests.__file__).parents[1]
DEADLINE_S = 60.0

M = TypeVar("M", bound=Message)


@dataclass
class CommitterProcess:
    """A committer that serves, or died on its way there."""

    child: subprocess.Popen[str]
    log: Path

    def ready(self) -> bool:
        """Wait until it serves; False if it ends before."""
        stdout: IO[str] | None = self.child.stdout
        assert stdout is not None
        line = stdout.readline()
        return bool(line) and json.loads(line)["ready"] is True

    def exit_code(self) -> int:
        """Wait until it ends."""
        return self.child.wait(DEADLINE_S)

    def stop(self) -> int:
        """Ask it to end, and wait."""
        self.child.send_signal(signal.SIGTERM)
        return self.exit_code()


@dataclass(frozen=True)
class Installation:
    """A data folder with its catalog, and a broker."""

    settings: Settings
    brokers: str
    repository: Repository

    @contextmanager
    def committer(self, *, crash_at: str | None = None) -> Iterator[CommitterProcess]:
        """A committer process; killed at the end if it still runs."""
        env = os.environ | {
            "ODF_DATA_DIR": str(self.settings.data_dir),
            "ODF_KAFKA_BOOTSTRAP_SERVERS": self.brokers,
            CRASH_AT: crash_at or "",
        }
        log = self.settings.data_dir / "committer.log"
        command = [sys.executable, "-m", "services.committer"]
        with (
            log.open("ab") as errors,
            subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
        ):
            try:
                yield CommitterProcess(child, log)
            finally:
                if child.poll() is None:
                    child.kill()

    def propose(self, batches: Sequence[Message], *, key: DatasetId) -> None:
        """Send completions."""
        self.send([batch.to_json() for batch in batches], key=key)

    def send(self, values: Sequence[bytes], *, key: DatasetId) -> None:
        """Send anything to the topic of completions."""
        sender = producer(self.brokers)
        for value in values:
            sender.produce(COMPLETIONS, value, str(key))
        assert sender.flush(DEADLINE_S) == 0

    def told(self, dataset: Dataset, until: Callable[[list[BlockAppended]], bool]) -> list[BlockAppended]:
        """All notifications of a dataset from the beginning, as soon as `until` is content with them."""
        return self._read(BLOCKS, dataset, BlockAppended, until)

    def rejections(self, dataset: Dataset, until: Callable[[list[Rejection]], bool]) -> list[Rejection]:
        """All rejections of a dataset from the beginning."""
        return self._read(REJECTIONS, dataset, Rejection, until)

    def _read(self, topic: str, dataset: Dataset, model: type[M], until: Callable[[list[M]], bool]) -> list[M]:
        from confluent_kafka import TopicPartition

        found: list[M] = []
        reader = consumer(self.brokers, group="tests")
        reader.assign([TopicPartition(topic, 0, 0)])
        end = time.monotonic() + DEADLINE_S
        try:
            while not until(found):
                assert time.monotonic() < end, f"{topic} has only {found}"
                message = reader.poll(0.2)
                if message is None:
                    continue
                assert message.error() is None, message.error()
                if message.key() == str(dataset.entry.id).encode():
                    found.append(model.from_json(message.value() or b""))
        finally:
            reader.close()
        return found


@contextmanager
def installation(folder: Path, brokers: str) -> Iterator[Installation]:
    """A new data folder, and the topics at a broker."""
    settings = Settings(data_dir=folder)
    folder.mkdir(parents=True, exist_ok=True)
    create_topics(admin_client(brokers), SERVICE_TOPICS)
    with Catalog.open(settings.catalog_url) as catalog:
        yield Installation(settings, brokers, Repository.at(settings.repository_location, catalog))


def hashes(dataset: Dataset) -> list[Multihash]:
    """The blocks of the chain, oldest first."""
    return [block.hash for block in MetadataChain(dataset.objects, dataset.refs).blocks()][::-1]


def checked(dataset: Dataset) -> CheckedDataset:
    """The dataset, if everything about it is true."""
    return check_dataset(dataset.objects, dataset.refs)


def has_been_told(dataset: Dataset, number: int) -> Callable[[list[BlockAppended]], bool]:
    """Whether the block with that sequence number was told."""
    return lambda told: any(event.data.sequence_number == number for event in told)


def in_order_without_repetition(told: Sequence[BlockAppended]) -> list[Multihash]:
    """The blocks of notifications that were sent at least once and in order, as a subscriber sees them."""
    seen: list[Multihash] = []
    for event in told:
        if event.data.block_hash in seen:
            continue
        assert event.data.prev_block_hash == (seen[-1] if seen else None)
        assert event.data.sequence_number == len(seen)
        seen.append(event.data.block_hash)
    return seen
