"""Hearing of blocks, with the moment at which each notification arrived."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from odf_common.identity.did import DatasetId
from odf_common.kafka.clients import consumer
from odf_common.kafka.topics import BLOCKS
from odf_common.messages.block_appended import AppendedBlock, BlockAppended

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification. `time` is that of the wall clock, as other processes and files have it."""

    time: float
    block: AppendedBlock


class Notifications:
    """Listens in a thread of its own, from now on."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka import TopicPartition

        self._consumer = consumer(servers, group="bench-notifications")
        _, end = self._consumer.get_watermark_offsets(TopicPartition(BLOCKS, 0), timeout=30)
        self._consumer.assign([TopicPartition(BLOCKS, 0, end)])
        self._heard: list[Heard] = []
        self._news = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._listen, name="notifications", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping = True
        self._thread.join()
        self._consumer.close()

    def of(self, dataset_id: DatasetId) -> list[Heard]:
        """What was heard of a dataset's batches so far."""
        with self._news:
            return [each for each in self._heard if each.block.dataset_id == dataset_id and each.block.source]

    def wait(self, is_enough: Callable[[], bool], *, timeout_s: float, what: str) -> None:
        """Return once the condition holds; it is looked at with each notification."""
        with self._news:
            if not self._news.wait_for(is_enough, timeout_s):
                raise SystemExit(f"{what}: no such notification within {timeout_s:g} s")

    def wait_for_records(self, dataset_id: DatasetId, count: int, *, timeout_s: float = 180.0) -> list[Heard]:
        """The batches of a dataset, once they cover so many records."""
        what = f"{count} records of {dataset_id}"
        self.wait(lambda: covered(self.of(dataset_id)) >= count, timeout_s=timeout_s, what=what)
        return self.of(dataset_id)

    def _listen(self) -> None:
        while not self._stopping:
            message = self._consumer.poll(_POLL_S)
            if message is None or message.error() is not None:
                continue
            heard = Heard(time.time(), BlockAppended.from_json(message.value() or b"").data)
            with self._news:
                self._heard.append(heard)
                self._news.notify_all()


def covered(heard: list[Heard]) -> int:
    """How many records these batches stand for."""
    return sum(each.block.source.records for each in heard if each.block.source)
