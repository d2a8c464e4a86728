from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.kafka.topics import TopicDescription
from odf_common.messages.kafka_offsets import KafkaOffsets
from streaming_jobs.ingest.positions import Gap, Start, TopicExtent, start_of


def extent(*bounds: tuple[int, int], topic_id: str = "one") -> TopicExtent:
    return TopicExtent(
        TopicDescription(name="t", id=topic_id, partitions=len(bounds)),
        {partition: earliest for partition, (earliest, _) in enumerate(bounds)},
        {partition: end for partition, (_, end) in enumerate(bounds)},
    )


def read(topic_id: str = "one", **next_: int) -> KafkaOffsets:
    positions = {int(name[1:]): position for name, position in next_.items()}
    return KafkaOffsets(topic="t", topic_id=topic_id, start={}, next=positions)


def test_a_topic_that_was_never_read_is_read_from_its_beginning() -> None:
    assert start_of(None, extent((0, 0), (0, 9))) == Start({0: 0, 1: 0})


def test_reading_goes_on_where_the_chain_is() -> None:
    assert start_of(read(p0=5, p1=9), extent((3, 8), (9, 9))) == Start({0: 5, 1: 9})


def test_partitions_that_were_added_are_read_from_their_beginning() -> None:
    assert start_of(read(p0=5), extent((0, 8), (0, 2))) == Start({0: 5, 1: 0})


@pytest.mark.parametrize(
    ("known", "topic", "reason"),
    [
        (read(p0=5), extent((0, 8), topic_id="two"), "deleted and created again"),
        (read(p0=5), extent((7, 8)), "2 positions are lost"),
        (None, extent((7, 8)), "7 positions are lost"),
        (read(p0=5), extent((0, 8), (1, 2)), "partition 1: position 0 is next"),
        (read(p0=5), extent((0, 4)), "lost what the chain has read"),
    ],
)
def test_what_is_missing_is_not_passed_over(known: KafkaOffsets | None, topic: TopicExtent, reason: str) -> None:
    found = start_of(known, topic)
    assert isinstance(found, Gap)
    assert reason in found.reason
    assert "--accept-gap" in found.reason


Bounds = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(Bounds, min_size=1, max_size=4), st.dictionaries(st.integers(0, 3), st.integers(0, 25)))
def test_a_start_is_always_within_the_topic_and_where_the_chain_is(
    bounds: list[tuple[int, int]], next_: dict[int, int]
) -> None:
    known = KafkaOffsets(topic="t", topic_id="one", start={}, next=next_)
    found = start_of(known, extent(*bounds))
    wanted = {partition: next_.get(partition, 0) for partition in range(len(bounds))}
    fits = all(earliest <= wanted[each] <= end for each, (earliest, end) in enumerate(bounds))
    assert (found == Start(wanted)) if fits else isinstance(found, Gap)
