"""Sending a file to the topic of a source, as messages of whole records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from odf_common.errors import NotFoundError, StoreUnavailableError
from odf_common.kafka.clients import admin_client, producer
from odf_common.kafka.topics import Topic, create_topics, describe_topic

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from odf_common.catalog.records import PushSourceBinding
    from odf_common.ingest.cutting import Piece

_QUEUE_SIZE_KIB = 64 << 10
_CHUNK_SIZE = 1 << 20
_FLUSH_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Sent:
    """What the broker confirmed: per partition the first position and the one behind the last."""

    start: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    messages: int = 0
    records: int = 0
    size: int = 0

    def confirmed(self, partition: int, offset: int) -> None:
        """Take note of a message that is on the broker."""
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


def chunks_of(file: BinaryIO, on_read: Callable[[int], None] = lambda size: None) -> Iterator[bytes]:
    """The bytes of a file in chunks; `on_read` is told their sizes."""
    while chunk := file.read(_CHUNK_SIZE):
        on_read(len(chunk))
        yield chunk


def send(servers: str, topic: str, pieces: Iterable[Piece]) -> Sent:
    """Produce all pieces and wait until the broker has them; StoreUnavailableError says what it did not take."""
    sent = Sent()
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error.str())
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None, "a delivered message has a partition"
        assert offset is not None, "a delivered message has an offset"
        sent.confirmed(partition, offset)

    client = producer(
        servers,
        compression_type="lz4",
        queue_buffering_max_kbytes=_QUEUE_SIZE_KIB,
        batch_size=4 << 20,
        linger_ms=5,
        delivery_timeout_ms=int(_FLUSH_TIMEOUT_S * 1000),
    )
    for piece in pieces:
        while not failures:
            try:
                client.produce(topic, piece.data, on_delivery=delivered)
                break
            except BufferError:
                client.poll(0.1)  # the queue is full: wait until the broker took some of it
        client.poll(0)
        if failures:
            break
        sent.records += piece.records
        sent.size += len(piece.data)
    left = client.flush(_FLUSH_TIMEOUT_S)
    if failures or left:
        reason = failures[0] if failures else f"{left} messages were not confirmed within {_FLUSH_TIMEOUT_S:.0f} s"
        raise StoreUnavailableError(
            f"topic {topic}: {reason}. {sent.messages} messages are on the broker and will be committed"
        )
    return sent
