"""Asking the broker about push topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from odf_common.kafka.clients import admin_client, consumer, translated
from odf_common.kafka.topics import Topic, TopicDescription, create_topics, describe_topic
from streaming_jobs.ingest.positions import TopicExtent

if TYPE_CHECKING:
    from odf_common.catalog.records import PushSourceBinding

_TIMEOUT_S = 3.0  # the job must not wait longer for a broker that is away: it may have been told to stop
_SAMPLE = 64  # messages
_SAMPLE_TIMEOUT_S = 2.0


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
