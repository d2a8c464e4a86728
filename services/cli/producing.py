"""Sending messages to the topic of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odf_common.errors import NotFoundError, OdfError, StoreUnavailableError
from odf_common.kafka.clients import admin_client, producer
from odf_common.kafka.topics import Topic, create_topics, describe_topic

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from odf_common.catalog.records import PushSourceBinding

_QUEUE_SIZE_KIB = 64 << 10
_FLUSH_TIMEOUT_S = 60.0
_ANY_PARTITION = -1  # as the client calls it


class PartlySentError(OdfError):
    """Something is wrong with one of several payloads, and those before it were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message on its way: what it holds, and what is said about it."""

    value: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    records: int | None = None
    """None where nobody counted them."""
    size: int | None = None
    """Bytes of the payload, where they lie elsewhere."""
    timestamp_ms: int | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """Where a message is."""

    partition: int
    offset: int


@dataclass(slots=True)
class Sent:
    """What the broker confirmed: per partition the first position and the one behind the last."""

    start: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    messages: int = 0
    records: int | None = 0
    """None once there are some that nobody counted."""
    size: int = 0
    places: dict[int, Delivered] = field(default_factory=dict)
    """Of the messages by their number, from 0."""

    def confirmed(self, number: int, partition: int, offset: int) -> None:
        """Take note of a message that is on the broker."""
        self.places[number] = Delivered(partition, offset)
        self.start[partition] = min(self.start.get(partition, offset), offset)
        self.next[partition] = max(self.next.get(partition, 0), offset + 1)
        self.messages += 1


def ensure_topic(servers: str, binding: PushSourceBinding, *, was_read: bool) -> None:
    """Make the topic of a new source, if the running system has not come to it yet.

    NotFoundError for a topic that was read before: who deletes it must decide about what was in it.
    """
    admin = admin_client(servers)
    try:
        describe_topic(admin, binding.topic)
    except NotFoundError:
        if was_read:
            raise
        create_topics(admin, [Topic(name=binding.topic, partitions=binding.settings.partitions)])


class Sender:
    """Sends to one topic, once. Make it early: the broker takes half a second to know a producer that it can trust."""

    def __init__(self, servers: str) -> None:
        self._topic = ""
        self._sent = Sent()
        self._failures: list[str] = []
        self._number = 0
        self._client = producer(
            servers,
            compression_type="lz4",
            queue_buffering_max_kbytes=_QUEUE_SIZE_KIB,
            batch_size=4 << 20,
            linger_ms=5,
            delivery_timeout_ms=int(_FLUSH_TIMEOUT_S * 1000),
        )

    def send(self, topic: str, outgoing: Iterable[Outgoing]) -> Sent:
        """Produce all messages and wait until the broker has them; StoreUnavailableError says what it did not take."""
        self._topic = topic
        try:
            for message in outgoing:
                if not self._produce(message):
                    break
        except (OdfError, OSError) as error:
            sent = self._flushed()
            if not sent.messages:
                raise
            reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise PartlySentError(
                f"{reason}. What comes before it, {sent.messages} messages, is on the broker and will be committed: "
                "send only the rest again"
            ) from error
        return self._flushed()

    def _produce(self, message: Outgoing) -> bool:
        """Whether it still makes sense to go on."""
        headers: dict[str, str | bytes | None] = dict(message.headers)
        delivered = self._delivered(self._number)
        partition = _ANY_PARTITION if message.partition is None else message.partition
        while not self._failures:
            try:
                self._client.produce(
                    self._topic,
                    message.value,
                    headers=headers,
                    partition=partition,
                    timestamp=message.timestamp_ms or 0,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                self._client.poll(0.1)  # the queue is full: wait until the broker took some of it
        self._client.poll(0)
        if self._failures:
            return False
        known = self._sent.records
        self._sent.records = None if known is None or message.records is None else known + message.records
        self._sent.size += len(message.value) if message.size is None else message.size
        self._number += 1
        return True

    def _flushed(self) -> Sent:
        """What is on the broker, once that is everything."""
        left = self._client.flush(_FLUSH_TIMEOUT_S)
        if self._failures or left:
            unconfirmed = f"{left} messages were not confirmed within {_FLUSH_TIMEOUT_S:.0f} s"
            reason = self._failures[0] if self._failures else unconfirmed
            raise StoreUnavailableError(
                f"topic {self._topic}: {reason}. {self._sent.messages} messages are on the broker and will be committed"
            )
        return self._sent

    def _delivered(self, number: int) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failures.append(error.str())
                return
            partition, offset = message.partition(), message.offset()
            assert partition is not None, "a delivered message has a partition"
            assert offset is not None, "a delivered message has an offset"
            self._sent.confirmed(number, partition, offset)

        return delivered
