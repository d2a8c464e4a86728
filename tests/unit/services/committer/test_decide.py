"""The decision on one completion, and on many in whatever order they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.chain.state import ChainState
from odf_common.identity.did import DatasetId
from odf_common.messages.completion import Completion, RejectionReason
from odf_common.messages.kafka_offsets import AcceptedGap, KafkaOffsets
from odf_common.metadata.events import AddData, DisablePushSource, SetDataSchema
from odf_common.metadata.fragments import Checkpoint, SourceState
from odf_common.timestamp import Timestamp
from services.committer.decide import AlreadyCommitted, Append, Decision, Early, Reject, decide
from services.committer.plan import Plan, plan
from services.committer.waiting_room import Received
from tests.strategies import examples
from tests.streams import SCHEMA, START, WIDER_SCHEMA, Publisher, a_chain, sealed, take_turns

ID = DatasetId(bytes(range(32)))


@pytest.fixture
def chain() -> ChainState:
    return a_chain(ID)


@pytest.fixture
def publisher() -> Publisher:
    return Publisher(ID)


def appended(chain: ChainState, *batches: Completion) -> ChainState:
    """The chain after batches that all are committed."""
    for batch in batches:
        decision = decide(chain, batch)
        assert isinstance(decision, Append), decision
        chain = decision.chain
    return chain


def events(decision: Decision) -> list[Any]:
    assert isinstance(decision, Append), decision
    return [encoded.block.event for encoded in decision.blocks]


def rejected(chain: ChainState, batch: Completion) -> Reject:
    decision = decide(chain, batch)
    assert isinstance(decision, Reject), decision
    return decision


def changed(batch: Completion, **fields: Any) -> Completion:
    """The batch with other fields in its event."""
    return batch.model_copy(update={"events": (*batch.events[:-1], batch.add_data.model_copy(update=fields))})


def offsets_of(batch: Completion) -> KafkaOffsets:
    state = batch.add_data.new_source_state
    offsets = None if state is None else KafkaOffsets.of_state(state)
    assert offsets is not None
    return offsets


def offsets_of_event(added: AddData) -> KafkaOffsets:
    assert added.new_source_state is not None
    offsets = KafkaOffsets.of_state(added.new_source_state)
    assert offsets is not None
    return offsets


def large_payload(rows: Sequence[int]) -> Completion:
    """One message that becomes several slices."""
    publisher = Publisher(ID)
    batches = [publisher.batch(count, system_time=START) for count in rows]
    last = len(batches) - 1
    all_events: list[Any] = []
    for number, batch in enumerate(batches):
        state = offsets_of(batch).model_copy(
            update={"start": {0: 0}, "next": {0: int(number == last)}, "messages": int(number == last)}
        )
        added = batch.add_data.model_copy(update={"new_source_state": state.to_state("default")})
        all_events += [*batch.events[:-1], added]
    return batches[-1].model_copy(update={"events": tuple(all_events)})


def moved_on(chain: ChainState, *events: Any) -> ChainState:
    return sealed(events, chain)[1]


def as_received(batches: Sequence[Completion]) -> list[Received]:
    return [Received(batch, 0, position, 100, 0.0) for position, batch in enumerate(batches)]


def planned(chain: ChainState, batches: Sequence[Completion]) -> Plan:
    return plan(chain, as_received(batches), missing_slice=lambda _: None)


class TestAppending:
    def test_the_first_batch_brings_the_schema(self, chain: ChainState, publisher: Publisher) -> None:
        schema, data = events(decide(chain, publisher.batch(3)))
        assert isinstance(schema, SetDataSchema)
        assert isinstance(data, AddData)
        assert (data.prev_offset, data.prev_checkpoint) == (None, None)

    def test_the_next_batch_continues(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(3))
        (data,) = events(decide(chain, publisher.batch(2)))
        assert data.prev_offset == 2
        assert data.new_data.offset_interval.start == 3

    def test_the_blocks_have_the_time_of_the_batch(self, chain: ChainState, publisher: Publisher) -> None:
        batch = publisher.batch(3, system_time=START.plus_seconds(77))
        decision = decide(chain, batch)
        assert isinstance(decision, Append)
        assert {block.block.system_time for block in decision.blocks} == {START.plus_seconds(77)}

    def test_it_may_come_at_the_very_time_of_the_block_before(self, chain: ChainState, publisher: Publisher) -> None:
        appended(chain, publisher.batch(1, system_time=START), publisher.batch(1, system_time=START))

    def test_a_batch_without_rows_covers_its_positions(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(3), publisher.batch(0, dead_letters=2), publisher.batch(1))
        assert chain.last_offset == 3
        state = chain.source_state("default")
        assert state is not None
        offsets = KafkaOffsets.of_state(state)
        assert offsets is not None
        assert offsets.next == {0: 6}

    def test_the_first_batch_may_be_without_rows(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(0, dead_letters=2), publisher.batch(1))
        assert chain.last_offset == 0

    def test_partitions_that_come_later_begin_at_zero(self, chain: ChainState, publisher: Publisher) -> None:
        appended(chain, publisher.batch(2, partition=0), publisher.batch(2, partition=3), publisher.batch(1))

    def test_a_checkpoint_of_another_writer_is_continued(self, chain: ChainState, publisher: Publisher) -> None:
        checkpoint = Checkpoint(physical_hash=chain.head, size=3)
        chain = moved_on(chain, AddData(new_watermark=START, new_checkpoint=checkpoint))
        *_, data = events(decide(chain, publisher.batch(3)))
        assert data.prev_checkpoint == checkpoint.physical_hash


class TestWatermark:
    def test_it_is_the_proposed_one(self, chain: ChainState, publisher: Publisher) -> None:
        assert appended(chain, publisher.batch(1, watermark=START.plus_seconds(9))).watermark == START.plus_seconds(9)

    def test_it_never_goes_back(self, chain: ChainState, publisher: Publisher) -> None:
        first = publisher.batch(1, watermark=START.plus_seconds(9))
        chain = appended(chain, first, publisher.batch(1, watermark=START.plus_seconds(5)))
        assert chain.watermark == START.plus_seconds(9)

    def test_one_set_by_hand_between_two_batches_stays(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(1))
        by_hand = START.plus_seconds(1000)
        chain = moved_on(chain, AddData(prev_offset=chain.last_offset, new_watermark=by_hand))
        assert appended(chain, publisher.batch(1)).watermark == by_hand

    def test_there_need_be_none(self, chain: ChainState, publisher: Publisher) -> None:
        assert appended(chain, changed(publisher.batch(1), new_watermark=None)).watermark is None


class TestSchema:
    def test_an_evolved_one_is_set_with_the_data(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(1))
        publisher.evolve(WIDER_SCHEMA)
        schema, data = events(decide(chain, publisher.batch(1)))
        assert (schema.kind, data.kind) == ("SetDataSchema", "AddData")

    def test_one_that_the_chain_has_is_not_repeated(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(1))
        publisher.evolve(SCHEMA)
        assert [event.kind for event in events(decide(chain, publisher.batch(1)))] == ["AddData"]

    def test_one_that_loses_a_column_is_refused(self, chain: ChainState, publisher: Publisher) -> None:
        publisher.evolve(WIDER_SCHEMA)
        chain = appended(chain, publisher.batch(1))
        publisher.evolve(SCHEMA)
        answer = rejected(chain, publisher.batch(1))
        assert answer.reason is RejectionReason.REFUSED
        assert "not compatible" in answer.message

    def test_data_before_any_is_refused(self, chain: ChainState, publisher: Publisher) -> None:
        batch = publisher.batch(1)
        batch = batch.model_copy(update={"events": (batch.add_data,)})
        assert rejected(chain, batch).reason is RejectionReason.REFUSED

    def test_one_that_cannot_be_read_is_refused(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(1))
        broken = SetDataSchema(raw_arrow_schema=b"nonsense")
        batch = publisher.batch(1)
        batch = batch.model_copy(update={"events": (broken, batch.add_data)})
        assert rejected(chain, batch).reason is RejectionReason.REFUSED


class TestRepetition:
    def test_a_batch_that_the_chain_covers_is_done(self, chain: ChainState, publisher: Publisher) -> None:
        first, second = publisher.batches_of(2)
        chain = appended(chain, first, second)
        assert decide(chain, first) == decide(chain, second) == AlreadyCommitted()

    def test_it_is_done_although_its_source_was_disabled(self, chain: ChainState, publisher: Publisher) -> None:
        batch = publisher.batch()
        chain = moved_on(appended(chain, batch), DisablePushSource(source_name="default"))
        assert decide(chain, batch) == AlreadyCommitted()

    def test_a_batch_that_covers_nothing_is_done(self, chain: ChainState, publisher: Publisher) -> None:
        assert decide(chain, publisher.batch(0)) == AlreadyCommitted()


class TestLargePayload:
    """Several slices of one message: several blocks, of which only the last covers the message."""

    def test_it_becomes_a_block_for_each_slice(self, chain: ChainState) -> None:
        batch = large_payload(rows=(3, 2, 4))
        added = [event for event in events(decide(chain, batch)) if isinstance(event, AddData)]
        assert [event.prev_offset for event in added] == [None, 2, 4]
        states = [offsets_of_event(event) for event in added]
        assert [state.next for state in states] == [{0: 0}, {0: 0}, {0: 1}]
        chain = appended(chain, batch)
        assert chain.last_offset == 8
        assert decide(chain, batch) == AlreadyCommitted()

    def test_one_that_covers_positions_too_early_is_refused(self, chain: ChainState) -> None:
        batch = large_payload(rows=(3, 2))
        first = next(event for event in batch.events if isinstance(event, AddData))
        covering = offsets_of_event(first).model_copy(update={"next": {0: 1}}).to_state("default")
        moved = first.model_copy(update={"new_source_state": covering})
        broken = tuple(moved if event is first else event for event in batch.events)
        answer = rejected(chain, batch.model_copy(update={"events": broken}))
        assert answer.reason is RejectionReason.REFUSED
        assert "not the batch's last" in answer.message

    def test_slices_of_different_sources_are_refused(self, chain: ChainState) -> None:
        batch = large_payload(rows=(3, 2))
        first = next(event for event in batch.events if isinstance(event, AddData))
        other = first.model_copy(update={"new_source_state": offsets_of_event(first).to_state("other")})
        broken = tuple(other if event is first else event for event in batch.events)
        assert rejected(chain, batch.model_copy(update={"events": broken})).reason is RejectionReason.REFUSED

    def test_the_slice_that_is_missing_is_named(self, chain: ChainState) -> None:
        batch = large_payload(rows=(3, 2))
        result = plan(chain, as_received([batch]), missing_slice=lambda done: done.slices[1])
        assert str(batch.slices[1].physical_hash) in result.rejections[0].message
        assert not result.blocks


class TestPlace:
    def test_a_batch_before_its_predecessor_is_early(self, chain: ChainState, publisher: Publisher) -> None:
        publisher.batch()
        assert isinstance(decide(chain, publisher.batch()), Early)

    def test_one_that_overlaps_what_is_committed_is_stale(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(3))
        overlapping = Publisher(ID).batch(5)
        assert rejected(chain, overlapping).reason is RejectionReason.STALE

    def test_one_ahead_in_one_partition_and_behind_in_another_is_stale(self, chain: ChainState) -> None:
        chain = appended(chain, Publisher(ID, has_schema=False).batch(3, partition=0))
        other = Publisher(ID, offset=3, positions={1: 3}, has_schema=True)
        assert rejected(chain, other.batch(9)).reason is RejectionReason.STALE

    def test_one_with_offsets_that_are_taken_is_stale(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(3))
        publisher.offset = 1
        answer = rejected(chain, publisher.batch(3))
        assert answer.reason is RejectionReason.STALE
        assert "offset 1" in answer.message

    def test_one_behind_a_batch_of_another_source_is_early(self) -> None:
        chain = a_chain(ID, sources=("one", "two"))
        one, two = Publisher(ID, source="one"), Publisher(ID, source="two")
        first, second, third = take_turns([one, two], 3)
        assert isinstance(decide(appended(chain, first), third), Early)
        appended(chain, first, second, third)

    def test_one_of_an_earlier_time_is_stale(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch(system_time=START.plus_seconds(9)))
        assert rejected(chain, publisher.batch(system_time=START)).reason is RejectionReason.STALE


class TestSource:
    def test_a_disabled_one_takes_nothing(self, chain: ChainState, publisher: Publisher) -> None:
        chain = moved_on(appended(chain, publisher.batch()), DisablePushSource(source_name="default"))
        assert rejected(chain, publisher.batch()).reason is RejectionReason.SOURCE_INACTIVE

    def test_an_unknown_one_takes_nothing(self, chain: ChainState) -> None:
        assert rejected(chain, Publisher(ID, source="other").batch()).reason is RejectionReason.SOURCE_INACTIVE

    def test_a_batch_names_its_positions(self, chain: ChainState, publisher: Publisher) -> None:
        batch = publisher.batch()
        foreign = SourceState(source_name="default", kind="example.org/other", value="1")
        broken = SourceState(source_name="default", kind="odf-streams/kafka-offsets", value="{}")
        for state in (None, foreign, broken):
            assert rejected(chain, changed(batch, new_source_state=state)).reason is RejectionReason.REFUSED

    def test_a_batch_does_not_end_before_it_starts(self, chain: ChainState, publisher: Publisher) -> None:
        backwards = KafkaOffsets(topic="t", topic_id="topic-1", start={0: 5}, next={0: 3}).to_state("default")
        batch = changed(publisher.batch(), new_source_state=backwards)
        assert rejected(chain, batch).reason is RejectionReason.REFUSED

    @pytest.mark.parametrize(
        "counts", [{"records": 4}, {"records": 2}, {"duplicates": 1}, {"dead_letters": 1}, {"messages": 4}]
    )
    def test_a_batch_accounts_for_every_record(
        self, chain: ChainState, publisher: Publisher, counts: dict[str, int]
    ) -> None:
        batch = publisher.batch(3)
        wrong = offsets_of(batch).model_copy(update=counts).to_state("default")
        answer = rejected(chain, changed(batch, new_source_state=wrong))
        assert answer.reason is RejectionReason.REFUSED
        assert "does not add up" in answer.message

    def test_a_batch_brings_no_checkpoint(self, chain: ChainState, publisher: Publisher) -> None:
        batch = changed(publisher.batch(), new_checkpoint=Checkpoint(physical_hash=chain.head, size=1))
        assert rejected(chain, batch).reason is RejectionReason.REFUSED


class TestTopic:
    """A topic that was deleted and created again is another one, whatever its positions."""

    def test_another_one_is_stale(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch())
        again = Publisher(ID, topic_id="topic-2", offset=3, positions={0: 3}, has_schema=True)
        answer = rejected(chain, again.batch())
        assert answer.reason is RejectionReason.STALE
        assert "topic-2" in answer.message

    def test_another_one_is_continued_behind_an_accepted_gap(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch())
        again = Publisher(ID, topic_id="topic-2", offset=3, has_schema=True)
        gap = AcceptedGap(reason="deleted", lost_topic_id="topic-1", lost_next={0: 3})
        chain = moved_on(chain, again.batch(0, gap=gap).add_data)
        appended(chain, again.batch())

    def test_the_retention_may_have_overtaken_us(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch())
        later = Publisher(ID, offset=3, positions={0: 100}, has_schema=True)
        gap = AcceptedGap(reason="retention", lost_topic_id="topic-1", lost_next={0: 3})
        chain = moved_on(chain, later.batch(0, gap=gap).add_data)
        appended(chain, later.batch())

    def test_a_batch_accepts_no_gap(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch())
        again = Publisher(ID, topic_id="topic-2", offset=3, has_schema=True)
        gap = AcceptedGap(reason="deleted", lost_topic_id="topic-1", lost_next={0: 3})
        assert rejected(chain, again.batch(0, gap=gap)).reason is RejectionReason.REFUSED

    def test_it_keeps_its_name(self, chain: ChainState, publisher: Publisher) -> None:
        chain = appended(chain, publisher.batch())
        batch = publisher.batch()
        renamed = offsets_of(batch).model_copy(update={"topic": "other"}).to_state("default")
        assert rejected(chain, changed(batch, new_source_state=renamed)).reason is RejectionReason.REFUSED


class TestWhateverTheOrder:
    """Batches that come twice, in any order, lead to the same chain: the same blocks."""

    @examples(60)
    @given(st.data())
    def test_of_one_source(self, data: st.DataObject) -> None:
        batches = Publisher(ID).batches_of(8)
        self.check(a_chain(ID), batches, data)

    @examples(60)
    @given(st.data())
    def test_of_two_sources(self, data: st.DataObject) -> None:
        one, two = Publisher(ID, source="one"), Publisher(ID, source="two")
        self.check(a_chain(ID, sources=("one", "two")), list(take_turns([one, two], 8)), data)

    def check(self, chain: ChainState, batches: list[Completion], data: st.DataObject) -> None:
        expected = appended(chain, *batches)
        delivered = data.draw(st.permutations([*batches, *data.draw(st.lists(st.sampled_from(batches)))]))
        cut = data.draw(st.integers(0, len(delivered)))
        first = planned(chain, delivered[:cut])
        waiting = [each.completion for each in first.early]
        second = planned(first.chain, [*waiting, *delivered[cut:]])
        assert second.chain == expected
        assert not second.early
        assert not first.rejections
        assert not second.rejections
        numbers = [block.block.sequence_number for block in [*first.blocks, *second.blocks]]
        assert numbers == list(range(chain.next_sequence_number, expected.next_sequence_number))


def test_a_batch_whose_slice_is_gone_is_told_so(chain: ChainState, publisher: Publisher) -> None:
    first, second = publisher.batches_of(2)
    result = plan(
        chain, as_received([first, second]), missing_slice=lambda done: done.slices[0] if done is first else None
    )
    assert [answer.reason for answer in result.rejections] == [RejectionReason.MISSING_SLICE]
    assert [each.completion for each in result.early] == [second]


def test_the_same_question_has_the_same_answer(chain: ChainState, publisher: Publisher) -> None:
    batch = publisher.batch()
    assert decide(chain, batch) == decide(ChainState.model_validate_json(chain.model_dump_json()), batch)


def test_an_id_of_the_batch_does_not_matter_to_the_blocks(chain: ChainState, publisher: Publisher) -> None:
    batch = publisher.batch()
    assert decide(chain, batch) == decide(chain, batch.model_copy(update={"id": "other"}))


def test_a_time_far_ahead_is_taken(chain: ChainState, publisher: Publisher) -> None:
    appended(chain, publisher.batch(system_time=Timestamp.parse("9999-12-31T23:59:59Z")))
