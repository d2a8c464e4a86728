"""Where a source goes on reading, decided from its chain and its topic as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odf_common.kafka.topics import TopicDescription
from odf_common.messages.kafka_offsets import KafkaOffsets


@dataclass(frozen=True, slots=True)
class TopicExtent:
    """A topic and what it holds of each partition: positions `[earliest, end)`."""

    topic: TopicDescription
    earliest: Mapping[int, int]
    end: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Start:
    """Go on from here; every partition is named."""

    positions: dict[int, int]


@dataclass(frozen=True, slots=True)
class Gap:
    """What comes next in the chain is not in the topic (any more); a person decides whether to go on without it."""

    reason: str


def start_of(read: KafkaOffsets | None, extent: TopicExtent) -> Start | Gap:
    """Where to go on, or why that is not possible without losing something."""
    name = extent.topic.name
    if read is not None and read.topic_id != extent.topic.id:
        return Gap(
            f"topic {name} was deleted and created again: it has the id {extent.topic.id}, the chain was read from "
            f"{read.topic_id}. {_WAY_OUT}"
        )
    known = {} if read is None else read.next
    positions = {partition: known.get(partition, 0) for partition in range(extent.topic.partitions)}
    for partition, position in positions.items():
        earliest, end = extent.earliest[partition], extent.end[partition]
        if position < earliest:
            return Gap(
                f"topic {name}, partition {partition}: position {position} is next, but the broker kept only what is "
                f"at {earliest} and later; {earliest - position} positions are lost. {_WAY_OUT}"
            )
        if position > end:
            return Gap(
                f"topic {name}, partition {partition}: position {position} is next, but the topic ends at {end}: "
                f"the broker lost what the chain has read. {_WAY_OUT}"
            )
    return Start(positions)


_WAY_OUT = "To go on without what is missing: `odf source resume DATASET SOURCE --accept-gap`"
