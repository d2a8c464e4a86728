"""What is told about a block follows from the block."""

from __future__ import annotations

from typing import Any

import pytest

from odf_common.chain.state import ChainState, next_block
from odf_common.identity.did import DatasetId
from odf_common.messages.appending import appended_block
from odf_common.messages.block_appended import AppendedBlock, BlockAppended
from odf_common.messages.kafka_offsets import KAFKA_OFFSETS, KafkaOffsets
from odf_common.metadata.events import AddData, ExecuteTransform, SetInfo
from odf_common.metadata.fragments import SourceState
from odf_common.wire.encode import seal
from tests.streams import START, a_chain, described_slice

ID = DatasetId(bytes(range(32)))
OFFSETS = KafkaOffsets(topic="t", topic_id="i", start={0: 1}, next={0: 4}, messages=3, records=3)


@pytest.fixture
def chain() -> ChainState:
    return a_chain(ID)


def told(chain: ChainState, event: Any) -> AppendedBlock:
    return appended_block(ID, "acme/cities", seal(next_block(chain, event, system_time=START)))


def test_of_data(chain: ChainState) -> None:
    data = described_slice(5, 3)
    state = OFFSETS.to_state("default")
    block = told(chain, AddData(prev_offset=4, new_data=data, new_watermark=START, new_source_state=state))
    assert (block.event_kind, block.sequence_number, block.prev_block_hash) == ("AddData", 2, chain.head)
    assert (block.offset_interval, block.num_records, block.watermark) == (data.offset_interval, 3, START)
    assert block.source is not None
    assert (block.source.name, block.source.next) == ("default", {0: 4})


def test_of_a_watermark_alone(chain: ChainState) -> None:
    block = told(chain, AddData(new_watermark=START))
    assert (block.offset_interval, block.num_records, block.watermark, block.source) == (None, 0, START, None)


def test_of_a_transform(chain: ChainState) -> None:
    block = told(chain, ExecuteTransform(query_inputs=(), new_data=described_slice(0, 4), new_watermark=START))
    assert (block.num_records, block.watermark) == (4, START)


def test_of_anything_else(chain: ChainState) -> None:
    block = told(chain, SetInfo(description="x"))
    assert (block.event_kind, block.num_records, block.watermark, block.source) == ("SetInfo", 0, None, None)


@pytest.mark.parametrize("state", [("example.org/other", "1"), (KAFKA_OFFSETS, "damaged"), (KAFKA_OFFSETS, "{}")])
def test_a_state_that_nobody_understands_is_left_out(chain: ChainState, state: tuple[str, str]) -> None:
    kind, value = state
    source_state = SourceState(source_name="default", kind=kind, value=value)
    assert told(chain, AddData(new_source_state=source_state)).source is None


def test_the_event_around_it_is_the_same_each_time(chain: ChainState) -> None:
    events = {BlockAppended.of(told(chain, AddData(new_watermark=START))).to_json() for _ in range(2)}
    assert len(events) == 1
