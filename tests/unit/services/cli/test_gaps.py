from __future__ import annotations

import pytest

from odf_common.chain.state import ChainState
from odf_common.errors import NotFoundError
from odf_common.kafka.topics import TopicDescription
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.fragments import SourceState
from odf_common.timestamp import Timestamp
from services.cli.gaps import NoGapError, accepted_gap_events
from tests.unit.odf_common.repository.snapshots import a_source

NOON = Timestamp.parse("2020-01-01T12:00:00Z")


def a_chain(next_: dict[int, int] | None = None) -> ChainState:
    states: tuple[SourceState, ...] = ()
    if next_ is not None:
        states = (KafkaOffsets(topic="t", topic_id="one", start={}, next=next_).to_state("default"),)
    return ChainState(push_sources=(a_source(),), source_states=states, watermark=NOON, last_offset=4)


def accepted(chain: ChainState, bounds: dict[int, tuple[int, int]], *, topic_id: str = "one") -> KafkaOffsets:
    topic = TopicDescription(name="t", id=topic_id, partitions=len(bounds))
    (event,) = accepted_gap_events(chain, "default", topic, bounds, reason="it was deleted")
    assert (event.new_watermark, event.prev_offset, event.new_data) == (NOON, 4, None)
    assert event.new_source_state is not None
    offsets = KafkaOffsets.of_state(event.new_source_state)
    assert offsets is not None
    assert offsets.start == offsets.next
    return offsets


def test_a_new_topic_is_read_from_its_beginning() -> None:
    offsets = accepted(a_chain({0: 7}), {0: (0, 5), 1: (0, 0)}, topic_id="two")
    assert offsets.next == {0: 0, 1: 0}
    assert offsets.accepted_gap is not None
    assert (offsets.accepted_gap.lost_topic_id, offsets.accepted_gap.lost_next) == ("one", {0: 7})


def test_what_was_read_before_retention_overtook_is_not_read_again() -> None:
    assert accepted(a_chain({0: 7, 1: 9}), {0: (12, 20), 1: (3, 20)}).next == {0: 12, 1: 9}


def test_reading_goes_on_at_the_end_of_a_topic_that_lost_what_was_read() -> None:
    assert accepted(a_chain({0: 7, 1: 9}), {0: (0, 5), 1: (0, 12)}).next == {0: 5, 1: 9}


def test_a_source_that_never_read_begins_with_what_is_left() -> None:
    assert accepted(a_chain(), {0: (12, 20)}).next == {0: 12}


def test_without_a_gap_there_is_nothing_to_accept() -> None:
    topic = TopicDescription(name="t", id="one", partitions=1)
    with pytest.raises(NoGapError, match="resume without"):
        accepted_gap_events(a_chain({0: 7}), "default", topic, {0: (3, 7)}, reason="x")
    with pytest.raises(NotFoundError):
        accepted_gap_events(a_chain(), "other", topic, {0: (3, 7)}, reason="x")
