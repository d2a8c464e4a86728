from __future__ import annotations

import asyncio
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from odf_common.messages.block_appended import BlockAppended
from odf_common.repository.repository import Repository
from services.gateway import feed as feeds
from services.gateway.feed import BlockConsumer, BlockFeed, first_position
from tests.unit.services.gateway.builders import a_dataset, append, numbers, watermarks

pytestmark = pytest.mark.anyio


class FakeMessage:
    def __init__(self, value: bytes) -> None:
        self._value = value

    def error(self) -> None:
        return None

    def value(self) -> bytes:
        return self._value

    def offset(self) -> int:
        return 0


class FakeConsumer:
    """Gives one message after the other; some things fail."""

    def __init__(self, *messages: bytes | Exception, end: int = 7, at_time: int = -1) -> None:
        self.messages = list(messages)
        self.end, self.at_time = end, at_time
        self.problems: list[KafkaException] = []
        self.assigned: list[int] = []

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        if self.problems:
            raise self.problems.pop(0)
        return 0, self.end

    def offsets_for_times(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(places[0].topic, 0, self.at_time)]

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned.append(places[0].offset)

    def position(self, places: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(places[0].topic, 0, 8)]

    def poll(self, timeout: float) -> Any:
        if not self.messages:
            return None
        message = self.messages.pop(0)
        if isinstance(message, Exception):
            raise message
        return FakeMessage(message)

    def consume(self, count: int, timeout: float) -> list[Any]:
        return []

    def close(self) -> None:
        pass


async def heard(consumer: FakeConsumer, count: int) -> list[BlockAppended]:
    """What subscribers get of a consumer's messages."""
    feed = BlockFeed()
    with (
        mock.patch("services.gateway.feed.clients.consumer", return_value=consumer),
        mock.patch.object(feeds, "_PAUSE_S", 0.01),
        mock.patch.object(feeds, "_POLL_S", 0.01),
        feed.subscribed() as subscription,
    ):
        listener = BlockConsumer("127.0.0.1:1", feed, asyncio.get_running_loop())
        listener.start()
        assert await asyncio.to_thread(listener.wait_until_placed, 5)
        async with asyncio.timeout(5):
            found = [await subscription.next() for _ in range(count)]
        assert listener.is_alive()
        await asyncio.to_thread(listener.close)
        assert not listener.is_alive()
    return found


async def test_a_failure_does_not_end_the_listening(repository: Repository) -> None:
    one, two = append(a_dataset(repository), *watermarks(2))
    consumer = FakeConsumer(one.to_json(), ZeroDivisionError(), two.to_json())
    assert numbers(await heard(consumer, 2)) == [2, 3]
    assert consumer.assigned == [7, 8]


async def test_the_beginning_is_asked_for_until_the_broker_tells(repository: Repository) -> None:
    (told,) = append(a_dataset(repository), *watermarks(1))
    consumer = FakeConsumer(told.to_json())
    consumer.problems = [KafkaException(KafkaError(KafkaError._TRANSPORT))] * 2
    await heard(consumer, 1)
    assert consumer.assigned == [7]


async def test_a_topic_that_does_not_exist_is_read_whole(repository: Repository) -> None:
    (told,) = append(a_dataset(repository), *watermarks(1))
    consumer = FakeConsumer(told.to_json())
    consumer.problems = [KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))]
    await heard(consumer, 1)
    assert consumer.assigned == [0]


@pytest.mark.parametrize(("at_time", "expected"), [(-1, 7), (5, 5), (9, 7)])
def test_what_was_announced_since_the_start_is_read(at_time: int, expected: int) -> None:
    assert first_position(FakeConsumer(at_time=at_time), since_ms=1) == expected  # type: ignore[arg-type]
