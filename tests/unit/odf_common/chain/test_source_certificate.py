from __future__ import annotations

from typing import Any

import pytest

from odf_common.chain.source_certificate import SourceCertificate, SourceCertifier
from odf_common.errors import CorruptedError
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.messages.kafka_offsets import AcceptedGap, KafkaOffsets
from odf_common.metadata.events import AddData, MetadataEvent, SetInfo
from odf_common.metadata.fragments import DataSlice, OffsetInterval, SourceState
from odf_common.metadata.manifests import MetadataBlock
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal
from odf_common.wire.encoded_block import EncodedBlock

NOON = Timestamp.parse("2020-01-01T12:00:00Z")
HASH: Multihash = sha3_256(b"slice")


def a_block(event: MetadataEvent, number: int = 1) -> EncodedBlock:
    return seal(MetadataBlock(system_time=NOON, prev_block_hash=HASH, sequence_number=number, event=event))


def a_batch(
    start: dict[int, int], end: dict[int, int], *, rows: int = 0, source: str = "default", **more: Any
) -> EncodedBlock:
    fields = {"topic": "t", "topic_id": "one", "messages": 0, "records": rows} | more
    new_data = None
    if rows:
        new_data = DataSlice(
            logical_hash=HASH, physical_hash=HASH, offset_interval=OffsetInterval(start=0, end=rows - 1), size=1
        )
    offsets = KafkaOffsets(start=start, next=end, **fields)
    return a_block(AddData(new_data=new_data, new_source_state=offsets.to_state(source)))


def certified(*blocks: EncodedBlock) -> tuple[SourceCertificate, ...]:
    certifier = SourceCertifier()
    for block in blocks:
        certifier.block(block)
    return certifier.certificates()


def violation(*blocks: EncodedBlock) -> str:
    with pytest.raises(CorruptedError) as found:
        certified(*blocks)
    assert found.value.place == f"blocks/{blocks[-1].hash}"
    return found.value.reason


def test_ranges_that_tile_the_topic_are_summed_up() -> None:
    (certificate,) = certified(
        a_batch({}, {0: 3}, rows=5, messages=3),
        a_block(SetInfo(description="between")),
        a_batch({0: 3}, {0: 4, 1: 2}, rows=1, messages=3, records=6, duplicates=3, dead_letters=2),
    )
    assert certificate.next == {0: 4, 1: 2}
    assert (certificate.blocks, certificate.messages, certificate.records) == (2, 6, 11)
    assert (certificate.rows, certificate.duplicates, certificate.dead_letters) == (6, 3, 2)


def test_a_partition_that_is_not_named_is_at_its_beginning() -> None:
    assert certified(a_batch({0: 0, 1: 0}, {0: 1, 1: 0}, rows=1), a_batch({0: 1}, {0: 2}, rows=1))


def test_each_source_has_its_own_ranges() -> None:
    found = certified(a_batch({}, {0: 1}, rows=1), a_batch({}, {0: 9}, rows=2, source="other", topic_id="two"))
    assert [(each.source_name, each.rows) for each in found] == [("default", 1), ("other", 2)]


def test_a_watermark_that_repeats_the_state_is_no_second_reading() -> None:
    read = a_batch({}, {0: 1}, records=1, duplicates=1)
    assert isinstance(read.block.event, AddData)
    state = read.block.event.new_source_state
    (certificate,) = certified(read, a_block(AddData(new_watermark=NOON, new_source_state=state)))
    assert certificate.blocks == 1


def test_blocks_of_other_programs_are_none_of_its_business() -> None:
    other = AddData(new_source_state=SourceState(source_name="default", kind="odf/etag", value="x"))
    assert certified(a_block(other), a_block(AddData(new_watermark=NOON))) == ()


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ([a_batch({0: 1}, {0: 2}, rows=1)], "a gap"),
        ([a_batch({}, {0: 2}, rows=1), a_batch({0: 3}, {0: 4}, rows=1)], "a gap"),
        ([a_batch({}, {0: 2}, rows=1), a_batch({0: 2, 1: 1}, {0: 3, 1: 2}, rows=1)], "a gap"),
        ([a_batch({}, {0: 2}, rows=1), a_batch({0: 1}, {0: 4}, rows=1)], "an overlap"),
        ([a_batch({}, {0: 2}, rows=1), a_batch({}, {0: 2}, rows=1)], "an overlap"),
        ([a_batch({0: 3}, {0: 2}, rows=1)], "ends before it starts"),
        ([a_batch({}, {0: 2}, rows=1, records=2)], "which makes 1"),
        ([a_batch({}, {0: 2}, records=0, dead_letters=1)], "which makes 1"),
        ([a_batch({}, {0: 2}, rows=3, messages=3)], "3 messages from a range of 2"),
        ([a_batch({}, {0: 1}, rows=1), a_batch({0: 1}, {0: 2}, rows=1, topic_id="two")], "no gap was accepted"),
        ([a_batch({}, {0: 1}, rows=1), a_batch({0: 1}, {0: 2}, rows=1, topic="other")], "topic other"),
    ],
)
def test_what_does_not_fit_is_named_with_its_block(blocks: list[EncodedBlock], reason: str) -> None:
    assert reason in violation(*blocks)


def test_a_damaged_state_is_named() -> None:
    state = SourceState(source_name="default", kind="odf-streams/kafka-offsets", value="{}")
    assert "not a KafkaOffsets" in violation(a_block(AddData(new_source_state=state)))


def a_gap(topic_id: str, lost_next: dict[int, int]) -> AcceptedGap:
    return AcceptedGap(reason="deleted", lost_topic_id=topic_id, lost_next=lost_next)


def test_an_accepted_gap_is_counted_and_read_on_from() -> None:
    (certificate,) = certified(
        a_batch({}, {0: 5}, rows=5),
        a_batch({0: 0}, {0: 0}, topic_id="two", accepted_gap=a_gap("one", {0: 5})),
        a_batch({}, {0: 2}, rows=2, topic_id="two"),
    )
    assert (certificate.accepted_gaps, certificate.topic_id, certificate.rows) == (1, "two", 7)


@pytest.mark.parametrize("gap", [a_gap("three", {0: 5}), a_gap("one", {0: 4})])
def test_an_accepted_gap_says_what_was_there(gap: AcceptedGap) -> None:
    reason = violation(a_batch({}, {0: 5}, rows=5), a_batch({}, {}, topic_id="two", accepted_gap=gap))
    assert "accepts a gap behind" in reason
