"""Reading topics without a group: to their end, or on and on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from odf_common.errors import NotFoundError, StoreUnavailableError
from odf_common.kafka.clients import consumer, translated

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from odf_common.timestamp import Timestamp

REQUEST_TIMEOUT_S = 10.0
_POLL_S = 0.5
_CHUNK = 500  # messages


@contextmanager
def opened_consumer(servers: str, **settings: Any) -> Iterator[Consumer]:
    """A consumer that is closed again; its group is a name only, no position is ever kept."""
    opened = consumer(servers, group="odf-cli", enable_partition_eof=True, **settings)
    try:
        yield opened
    finally:
        opened.close()


def partitions_of(reader: Consumer, topic: str) -> list[int]:
    """The partitions of a topic; NotFoundError if it does not exist."""
    from confluent_kafka import KafkaError

    with translated(f"topic {topic}"):
        found = reader.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic]
    if found.error is not None:
        if found.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise NotFoundError(f"there is no topic {topic}: a running system makes it")
        raise StoreUnavailableError(f"topic {topic}: Kafka says {found.error.str()}")
    return sorted(found.partitions)


def bounds(reader: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    """Per partition the first position there is, and that behind the last message."""
    from confluent_kafka import TopicPartition

    with translated(f"topic {topic}"):
        return {
            partition: reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=REQUEST_TIMEOUT_S)
            for partition in partitions_of(reader, topic)
        }


def ends(reader: Consumer, topic: str) -> dict[int, int]:
    """Per partition the position behind the last message."""
    return {partition: end for partition, (_, end) in bounds(reader, topic).items()}


def positions_at(reader: Consumer, topic: str, time: Timestamp) -> dict[int, int]:
    """Per partition the first position whose message is not older than a time, or the end."""
    from confluent_kafka import TopicPartition

    milliseconds = int(time.to_datetime().timestamp() * 1000)
    last = ends(reader, topic)
    with translated(f"topic {topic}"):
        found = reader.offsets_for_times(
            [TopicPartition(topic, partition, milliseconds) for partition in last], timeout=REQUEST_TIMEOUT_S
        )
    return {each.partition: each.offset if each.offset >= 0 else last[each.partition] for each in found}


def read_to_end(reader: Consumer, topic: str, start: Mapping[int, int] | None = None) -> Iterator[Message]:
    """The messages from given positions, or from the beginning, to what is the end when it is reached."""
    from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

    open_partitions = set(partitions_of(reader, topic) if start is None else start)
    reader.assign(
        [TopicPartition(topic, each, OFFSET_BEGINNING if start is None else start[each]) for each in open_partitions]
    )
    silent_s = 0.0
    while open_partitions:
        messages = reader.consume(_CHUNK, timeout=_POLL_S)
        silent_s = 0.0 if messages else silent_s + _POLL_S
        if silent_s >= REQUEST_TIMEOUT_S:
            raise StoreUnavailableError(f"topic {topic}: Kafka gives no messages")
        for message in messages:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(message.partition())
            else:
                raise_fatal(topic, error)
    reader.unassign()


def assign(reader: Consumer, topic: str, start: Mapping[int, int]) -> None:
    """Let the consumer read from these positions on."""
    from confluent_kafka import TopicPartition

    reader.assign([TopicPartition(topic, partition, position) for partition, position in start.items()])


def poll(reader: Consumer, topic: str, timeout_s: float) -> list[Message]:
    """What an assigned topic has within a time: at once what is there, else the first messages that come."""
    first = reader.poll(timeout_s)
    if first is None:
        return []
    found = []
    for message in (first, *reader.consume(_CHUNK, timeout=0)):
        if message.error() is None:
            found.append(message)
        else:
            raise_fatal(topic, message.error())
    return found


def raise_fatal(topic: str, error: Any) -> None:
    """StoreUnavailableError for what does not pass by itself: the client tries again on its own for the rest."""
    from confluent_kafka import KafkaError

    if error.code() == KafkaError._PARTITION_EOF or (error.retriable() and not error.fatal()):
        return
    if error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
        return
    raise StoreUnavailableError(f"topic {topic}: Kafka says {error.str()}")
