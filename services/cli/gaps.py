"""Going on although messages are lost: the decision leaves its mark in the chain."""

from __future__ import annotations

from collections.abc import Mapping

from odf_common.chain.state import ChainState
from odf_common.errors import NotFoundError, OdfError
from odf_common.kafka.topics import TopicDescription
from odf_common.messages.kafka_offsets import AcceptedGap, KafkaOffsets
from odf_common.metadata.events import AddData
from odf_common.repository.appending import without_rows


class NoGapError(OdfError):
    """There is nothing to accept: the topic still holds what the chain wants to read next."""


def accepted_gap_events(
    chain: ChainState, source_name: str, topic: TopicDescription, bounds: Mapping[int, tuple[int, int]], *, reason: str
) -> list[AddData]:
    """The event that lets a source go on with what its topic holds now: of each partition the positions `[first, end)`.

    NoGapError if that is all that comes next.
    """
    if chain.source(source_name) is None:
        raise NotFoundError(f"there is no active source {source_name!r}")
    source_state = chain.source_state(source_name)
    before = KafkaOffsets.of_state(source_state) if source_state else None
    read = before.next if before is not None else {}
    lost_topic_id = before.topic_id if before is not None else topic.id
    same_topic = lost_topic_id == topic.id
    if same_topic and all(first <= read.get(each, 0) <= end for each, (first, end) in bounds.items()):
        raise NoGapError(f"topic {topic.name} still holds all that comes next; resume without --accept-gap")
    # What was read of this very topic is not read again, though it may still be there. A broker that lost its newest
    # messages gives their positions to others, so reading goes on at its end.
    positions = {
        each: min(max(first, read.get(each, 0)), end) if same_topic else first for each, (first, end) in bounds.items()
    }
    gap = AcceptedGap(reason=reason, lost_topic_id=lost_topic_id, lost_next=dict(read))
    offsets = KafkaOffsets(topic=topic.name, topic_id=topic.id, start=positions, next=positions, accepted_gap=gap)
    return [without_rows(chain, watermark=chain.watermark, source_state=offsets.to_state(source_name))]
