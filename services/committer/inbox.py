"""Completions from their topic: read in groups, positions noted behind what is safe."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from odf_common.errors import InvalidTextError, MalformedBytesError
from odf_common.identity.did import DatasetId
from odf_common.kafka.clients import consumer, translated
from odf_common.kafka.topics import COMPLETIONS
from odf_common.messages.completion import Completion, Rejection, RejectionReason
from services.committer.waiting_room import Received, WaitingRoom

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

_log = logging.getLogger("committer.inbox")

GROUP = "odf-committer"
_QUEUED_KB = 16 << 10
_TIMEOUT_S = 10.0


@dataclass(slots=True)
class Arrivals:
    """A group of messages, read."""

    completions: list[Received] = field(default_factory=list)
    malformed: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    """Answers to messages that are no completions, where it can be read whom to answer."""
    following: dict[int, int] = field(default_factory=dict)
    """By partition, the position behind the last of them."""


class Inbox:
    """The consumer of `odf.completions`.

    It is given its partitions instead of joining a group: what fences a second committer is the epoch, and a group
    would only add seconds to the start. The group's positions are a convenience after a restart.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer: Consumer = consumer(
            bootstrap_servers,
            group=GROUP,
            # The broker answers as soon as there is something; waiting longer for it costs nothing but idle polls.
            fetch_wait_max_ms=500,
            queued_max_messages_kbytes=_QUEUED_KB,
            fetch_queue_backoff_ms=5,
        )
        self._settled: dict[int, int] = {}
        self._noted: dict[int, int] = {}

    def start(self) -> None:
        """Begin where the last committer noted its positions, or at the beginning.

        StoreUnavailableError when the broker does not say, as one that has just started may not for a while.
        """
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        with translated(f"topic {COMPLETIONS}"):
            partitions = self._consumer.list_topics(COMPLETIONS, timeout=_TIMEOUT_S).topics[COMPLETIONS].partitions
            wanted = [TopicPartition(COMPLETIONS, partition) for partition in partitions or (0,)]
            # Asked for here, not left to the client: that gives up at the first error, and then reads nothing at all.
            noted = self._consumer.committed(wanted, timeout=_TIMEOUT_S)
            for each in noted:
                if each.error is not None:
                    raise KafkaException(each.error)
                if each.offset < 0:
                    each.offset = OFFSET_BEGINNING
            self._consumer.assign(noted)

    def read(self, *, wait: float, at_most: int, clock: float) -> Arrivals:
        """What has come, after waiting at most so many seconds for the first."""
        first = self._consumer.poll(wait)
        arrivals = Arrivals()
        if first is not None:
            for message in (first, *self._consumer.consume(at_most - 1, timeout=0)):
                self._take(message, arrivals, clock)
        return arrivals

    def settle(self, arrivals: Arrivals) -> None:
        """Everything that these ask for has been done or answered, or they wait in the waiting room."""
        self._settled |= arrivals.following

    def note(self, waiting: WaitingRoom) -> None:
        """Note, without waiting for it, up to where everything is settled."""
        from confluent_kafka import KafkaException, TopicPartition

        news = {}
        for partition, settled in self._settled.items():
            first = waiting.first_position(partition)
            position = settled if first is None else min(first, settled)
            if self._noted.get(partition) != position:
                news[partition] = position
        if not news:
            return
        try:
            self._consumer.commit(
                offsets=[TopicPartition(COMPLETIONS, partition, position) for partition, position in news.items()],
                asynchronous=True,
            )
        except KafkaException as error:
            _log.info("positions are noted later: %s", error)
        else:
            self._noted |= news

    def close(self) -> None:
        """Leave."""
        self._consumer.close()

    def _take(self, message: Message, arrivals: Arrivals, clock: float) -> None:
        if (trouble := message.error()) is not None:
            _log.warning("reading %s: %s", COMPLETIONS, trouble.str())
            return
        partition, position = message.partition(), message.offset()
        assert partition is not None
        assert position is not None
        arrivals.following[partition] = position + 1
        value = message.value() or b""
        try:
            done = Completion.from_json(value)
        except MalformedBytesError as error:
            _log.error("message %d of %s is left out: %s", position, COMPLETIONS, error)
            arrivals.malformed += 1
            if (answer := _answer(value, str(error))) is not None:
                arrivals.rejections.append(answer)
            return
        arrivals.completions.append(Received(done, partition, position, len(value), clock))


def _answer(value: bytes, message: str) -> Rejection | None:
    """The rejection of what is no completion, if it says at least whom to tell."""
    try:
        document = orjson.loads(value)
        return Rejection(
            completion_id=str(document["id"])[:200],
            dataset_id=DatasetId.parse(document["datasetId"]),
            reason=RejectionReason.REFUSED,
            message=message,
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, InvalidTextError):
        return None
