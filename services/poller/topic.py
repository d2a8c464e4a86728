"""The topic of a polling source: what it holds, and sending to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odf_common.catalog.records import PushSourceBinding
from odf_common.errors import NotFoundError, StoreUnavailableError
from odf_common.kafka.clients import admin_client, producer, translated
from odf_common.kafka.topics import Topic, create_topics, describe_topic
from odf_common.timestamp import NANOS_PER_SECOND, Timestamp
from services.poller.errors import FetchDamagedError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_TIMEOUT_S = 30.0
_NOW = 0
_NANOS_PER_MILLISECOND = NANOS_PER_SECOND // 1000
_PARTITION = 0  # one poll builds on another, so all of them stand in one order


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be sent."""

    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(slots=True)
class Positions:
    """Where messages are: per partition the first position and the one behind the last."""

    start: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)

    def add(self, partition: int, offset: int) -> None:
        """Take note of one more."""
        self.start[partition] = min(self.start.get(partition, offset), offset)
        self.next[partition] = max(self.next.get(partition, 0), offset + 1)


def ends_of(servers: str, binding: PushSourceBinding, *, was_read: bool) -> dict[int, int]:
    """Per partition the position behind the last message; a topic that nobody has made yet is made.

    NotFoundError for one that was read before: who deletes it must decide about what was in it.
    """
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

    admin = admin_client(servers)
    try:
        found = describe_topic(admin, binding.topic)
    except NotFoundError:
        if was_read:
            raise
        create_topics(admin, [Topic(name=binding.topic, partitions=binding.settings.partitions)])
        return {}
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(binding.topic, each): latest for each in range(found.partitions)}
    with translated(f"topic {binding.topic}"):
        answers = admin.list_offsets(asked, request_timeout=_TIMEOUT_S)
        return {place.partition: answer.result().offset for place, answer in answers.items()}


def kafka_time(event_time: Timestamp | None) -> int:
    """A source event time as the time of a message; FetchDamagedError for one that Kafka has no words for."""
    if event_time is None:
        return _NOW
    milliseconds = event_time.ns // _NANOS_PER_MILLISECOND
    if milliseconds <= 0:
        raise FetchDamagedError(f"the event time {event_time} lies before 1970, and messages cannot carry that")
    return milliseconds


def send(servers: str, topic: str, messages: Sequence[Outgoing], *, time_ms: int = _NOW) -> Positions:
    """Send messages in their order, and return when the broker has them safely."""
    from confluent_kafka import KafkaException

    positions = Positions()
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None:
            failures.append(error.str())
        elif partition is not None and offset is not None:
            positions.add(partition, offset)

    client = producer(servers, compression_type="lz4", linger_ms=5, delivery_timeout_ms=int(_TIMEOUT_S * 1000))
    for message in messages:
        headers: list[tuple[str, str | bytes | None]] = list(message.headers)
        while not failures:
            try:
                client.produce(
                    topic,
                    message.value,
                    partition=_PARTITION,
                    headers=headers,
                    timestamp=time_ms,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                client.poll(0.1)  # the queue is full: wait until the broker took some of it
            except KafkaException as error:
                failures.append(error.args[0].str())
    left = client.flush(_TIMEOUT_S)
    if failures or left:
        reason = failures[0] if failures else f"{left} messages were not confirmed within {_TIMEOUT_S:.0f} s"
        raise StoreUnavailableError(f"topic {topic}: {reason}")
    return positions
