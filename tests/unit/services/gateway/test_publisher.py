from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import KafkaError

from services.gateway.errors import BrokerUnavailableError
from services.gateway.messages import PositionRange
from services.gateway.outgoing import Outgoing
from services.gateway.publisher import Publisher, ranges_of
from tests.unit.services.gateway.builders import FakeProducer


def test_consecutive_offsets_become_one_range() -> None:
    assert ranges_of({1: [4, 3, 5], 0: [7]}) == [
        PositionRange(partition=0, start=7, next=8),
        PositionRange(partition=1, start=3, next=6),
    ]


def test_messages_of_others_in_between_divide_a_range() -> None:
    assert ranges_of({0: [1, 2, 4]}) == [
        PositionRange(partition=0, start=1, next=3),
        PositionRange(partition=0, start=4, next=5),
    ]


def test_nothing_gives_no_range() -> None:
    assert ranges_of({}) == []


@pytest.mark.anyio
async def test_a_broken_producer_is_replaced_once() -> None:
    """However many payloads it had taken, as each of them hears of its end."""
    made: list[FakeProducer] = []

    def make() -> FakeProducer:
        made.append(FakeProducer(error=None if made else KafkaError._FATAL))
        return made[-1]

    publisher = Publisher(make)
    try:
        messages = [Outgoing(b"{}", [])]
        failed = [publisher.publish("t", messages, timestamp_ms=None) for _ in range(3)]
        for answer in await asyncio.gather(*failed, return_exceptions=True):
            assert isinstance(answer, BrokerUnavailableError)
        assert await publisher.publish("t", messages, timestamp_ms=None)
    finally:
        publisher.close()
    assert len(made) == 2
