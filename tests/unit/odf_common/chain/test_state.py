from __future__ import annotations

from odf_common.chain.state import ChainState
from odf_common.metadata.events import DatasetKind, DisablePushSource, SetVocab
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import MergeStrategyLedger
from tests.unit.odf_common.chain.builders import (
    LATER,
    NOON,
    a_chain,
    a_checkpoint,
    a_derivative,
    a_push_source,
    a_schema,
    a_slice,
    a_state,
    a_transaction,
    a_transform,
    add_data,
    an_id,
    an_input,
    mh,
)


def test_the_empty_chain_expects_block_and_offset_zero() -> None:
    assert ChainState().next_sequence_number == 0
    assert ChainState().next_offset == 0


def test_seed_gives_identity_and_kind() -> None:
    chain = a_chain()
    assert (chain.dataset_id, chain.dataset_kind) == (an_id(1), DatasetKind.ROOT)
    assert (chain.head, chain.sequence_number, chain.system_time) == (mh("block 0"), 0, NOON)


def test_offsets_and_watermark_follow_the_last_data_event() -> None:
    chain = a_chain(a_schema(), add_data(0, 9, new_watermark=NOON), add_data(prev_offset=9, new_watermark=LATER))
    assert (chain.last_offset, chain.next_offset, chain.watermark) == (9, 10, LATER)


def test_a_vocabulary_replaces_the_previous_one_as_a_whole() -> None:
    chain = a_chain(SetVocab(offset_column="o", event_time_column="t"), SetVocab(event_time_column="at"))
    assert chain.vocabulary == DatasetVocabulary(event_time_column="at")


def test_push_sources_are_replaced_by_name_and_leave_when_disabled() -> None:
    changed = a_push_source("a", merge=MergeStrategyLedger(primary_key=("k",)))
    chain = a_chain(a_push_source("a"), a_push_source("b"), changed)
    assert chain.push_sources == (changed, a_push_source("b"))
    assert a_chain(a_push_source("a"), a_push_source("b"), DisablePushSource(source_name="a")).push_sources == (
        a_push_source("b"),
    )


def test_each_source_keeps_its_latest_state_when_others_write() -> None:
    chain = a_chain(
        add_data(new_source_state=a_state("1", "a")),
        add_data(new_source_state=a_state("1", "b")),
        add_data(new_source_state=a_state("2", "a")),
        add_data(new_watermark=NOON),
    )
    assert chain.source_state("a") == a_state("2", "a")
    assert chain.source_state("b") == a_state("1", "b")
    assert chain.last_add_data is not None
    assert chain.last_add_data.source_state is None


def test_inputs_of_a_transaction_keep_their_place_when_they_stand_still() -> None:
    first = a_transaction(an_input(2, new_block_hash=mh("b2"), new_offset=5), an_input(3), new_data=a_slice(0, 1))
    second = a_transaction(
        an_input(2, prev_block_hash=mh("b2"), prev_offset=5),
        an_input(3, new_block_hash=mh("b3")),
        prev_offset=1,
        new_checkpoint=a_checkpoint("c"),
    )
    chain = a_derivative(a_schema(), a_transform(2, 3), first, second)
    assert chain.last_transaction is not None
    assert chain.last_transaction.inputs == (
        an_input(2, prev_block_hash=mh("b2"), prev_offset=5),
        an_input(3, prev_block_hash=mh("b3")),
    )
