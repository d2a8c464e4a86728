"""Asking the broker about push topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from odf_common.errors import StoreUnavailableError
from odf_common.kafka.clients import admin_client, consumer, headers_of, translated
from odf_common.kafka.topics import Topic, TopicDescription, create_topics, describe_topic
from streaming_jobs.ingest.positions import TopicExtent

if TYPE_CHECKING:
    from confluent_kafka import Message

    from odf_common.catalog.records import PushSourceBinding

_TIMEOUT_S = 3.0  # the job must not wait longer for a broker that is away: it may have been told to stop
_SAMPLE = 64  # messages
_SAMPLE_TIMEOUT_S = 2.0
_READ = 10_000  # messages at once
_READ_STEP_S = 1.0
_READ_STEPS = 30  # without any message

Headers = list[tuple[str, bytes | None]]


class PushTopics:
    """The broker's side of the sources."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._admin = admin_client(bootstrap_servers)

    def create(self, bindings: Iterable[PushSourceBinding]) -> None:
        """Create the topics that do not exist yet."""
        create_topics(
            self._admin,
            [Topic(name=binding.topic, partitions=binding.settings.partitions) for binding in bindings],
            timeout_s=_TIMEOUT_S,
        )

    def describe(self, name: str) -> TopicDescription:
        """The topic's id and partitions; NotFoundError if it is gone."""
        return describe_topic(self._admin, name, timeout_s=_TIMEOUT_S)

    def extent(self, name: str) -> TopicExtent:
        """The topic and what it holds."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin._listoffsets import OffsetSpec

        topic = self.describe(name)
        partitions = [TopicPartition(name, partition) for partition in range(topic.partitions)]

        def offsets(spec: OffsetSpec) -> dict[int, int]:
            asked = self._admin.list_offsets(dict.fromkeys(partitions, spec), request_timeout=_TIMEOUT_S)
            with translated(f"topic {name}"):
                return {partition.partition: found.result().offset for partition, found in asked.items()}

        return TopicExtent(
            topic,
            offsets(OffsetSpec.earliest()),  # type: ignore[no-untyped-call]
            offsets(OffsetSpec.latest()),  # type: ignore[no-untyped-call]
        )

    def sample(self, topic: str, positions: Mapping[int, int]) -> pa.ChunkedArray:
        """The values of some messages at these positions; none if nothing is there yet."""
        from confluent_kafka import TopicPartition

        with translated(f"topic {topic}"), closing(consumer(self._bootstrap_servers, group="odf-sample")) as sampler:
            sampler.assign([TopicPartition(topic, partition, position) for partition, position in positions.items()])
            messages = sampler.consume(_SAMPLE, _SAMPLE_TIMEOUT_S)
        return pa.chunked_array([[message.value() for message in messages if not message.error()]], pa.binary())

    def headers(
        self, topic: str, start: Mapping[int, int], end: Mapping[int, int]
    ) -> Iterator[list[tuple[int, int, Headers]]]:
        """Partition, position and headers of all messages from positions on to others, as far as they are there.

        Nothing now and then, so that whoever reads can stop.
        """
        from confluent_kafka import TopicPartition

        left = {partition: position for partition, position in end.items() if position > start.get(partition, 0)}
        with (
            translated(f"topic {topic}"),
            closing(consumer(self._bootstrap_servers, group="odf-headers", enable_partition_eof=True)) as reader,
        ):
            reader.assign([TopicPartition(topic, partition, start.get(partition, 0)) for partition in left])
            silent = 0
            while left:
                messages = reader.consume(_READ, _READ_STEP_S)
                silent = 0 if messages else silent + 1
                if silent > _READ_STEPS:
                    raise StoreUnavailableError(f"topic {topic}: the broker sent nothing for {_READ_STEPS} s")
                found = []
                for message in messages:
                    partition, offset = _place(message)
                    if message.error() is not None:
                        _check_end(message, topic)
                        left.pop(partition, None)
                        continue
                    if offset < end.get(partition, 0):
                        found.append((partition, offset, headers_of(message)))
                    if offset + 1 >= end.get(partition, 0):
                        left.pop(partition, None)
                yield found


def _place(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    return partition, -1 if offset is None else offset


def _check_end(message: Message, topic: str) -> None:
    """That a partition ends is no error."""
    from confluent_kafka import KafkaError

    error = message.error()
    assert error is not None
    if error.code() != KafkaError._PARTITION_EOF:
        raise StoreUnavailableError(f"topic {topic}: Kafka says {error.str()}")
