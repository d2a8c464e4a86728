"""Positions are noted behind what is settled, and messages that are no completions are left out."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from odf_common.errors import StoreUnavailableError
from odf_common.identity.did import DatasetId
from odf_common.messages.completion import RejectionReason
from services.committer.inbox import Inbox
from services.committer.waiting_room import RoomLimits, WaitingRoom
from tests.streams import Publisher

ID = DatasetId(bytes(32))


class FakeMessage:
    def __init__(self, value: bytes | None, position: int) -> None:
        self._value = value
        self._position = position

    def value(self) -> bytes | None:
        return self._value

    def offset(self) -> int:
        return self._position

    def partition(self) -> int:
        return 0

    def error(self) -> None:
        return None


class FakeConsumer:
    """Gives what it has, and remembers what was noted."""

    def __init__(self) -> None:
        self.queued: list[FakeMessage] = []
        self.noted: list[int] = []

    def add(self, *values: bytes | None) -> None:
        first = len(self.queued)
        self.queued.extend(FakeMessage(value, first + number) for number, value in enumerate(values))

    def poll(self, timeout: float) -> FakeMessage | None:
        return self.queued.pop(0) if self.queued else None

    def consume(self, count: int, timeout: float) -> list[FakeMessage]:
        taken, self.queued = self.queued[:count], self.queued[count:]
        return taken

    def commit(self, *, offsets: list[Any], asynchronous: bool) -> None:
        assert asynchronous
        self.noted.extend(offset.offset for offset in offsets)


@pytest.fixture
def consumer() -> FakeConsumer:
    return FakeConsumer()


@pytest.fixture
def inbox(consumer: FakeConsumer) -> Inbox:
    inbox = Inbox("127.0.0.1:1")
    inbox._consumer.close()
    inbox._consumer = consumer  # type: ignore[assignment]
    return inbox


@pytest.fixture
def room() -> WaitingRoom:
    return WaitingRoom(RoomLimits())


def test_a_group_is_what_is_queued(inbox: Inbox, consumer: FakeConsumer) -> None:
    batches = Publisher(ID).batches_of(3)
    consumer.add(*(batch.to_json() for batch in batches))
    arrivals = inbox.read(wait=0, at_most=2, clock=7.0)
    assert [each.completion for each in arrivals.completions] == batches[:2]
    assert [(each.position, each.at) for each in arrivals.completions] == [(0, 7.0), (1, 7.0)]
    assert arrivals.following == {0: 2}


def test_nothing_is_nothing(inbox: Inbox) -> None:
    assert not inbox.read(wait=0, at_most=2, clock=0).following


def test_only_what_is_settled_is_noted(inbox: Inbox, consumer: FakeConsumer, room: WaitingRoom) -> None:
    consumer.add(*(batch.to_json() for batch in Publisher(ID).batches_of(3)))
    arrivals = inbox.read(wait=0, at_most=10, clock=0)
    inbox.note(room)
    assert consumer.noted == []
    inbox.settle(arrivals)
    inbox.note(room)
    inbox.note(room)
    assert consumer.noted == [3]


def test_who_waits_is_read_again_after_a_restart(inbox: Inbox, consumer: FakeConsumer, room: WaitingRoom) -> None:
    consumer.add(*(batch.to_json() for batch in Publisher(ID).batches_of(3)))
    arrivals = inbox.read(wait=0, at_most=10, clock=0)
    room.seat(ID, arrivals.completions[1:], now=0)
    inbox.settle(arrivals)
    inbox.note(room)
    assert consumer.noted == [1]
    room.seat(ID, [], now=0)
    inbox.note(room)
    assert consumer.noted == [1, 3]


@pytest.mark.parametrize("value", [None, b"", b"nonsense", b"[]", b'"x"', b"{}", b'{"id": "x"}', b"\xff\xfe"])
def test_what_names_nobody_is_left_out(inbox: Inbox, consumer: FakeConsumer, value: bytes | None) -> None:
    consumer.add(value, Publisher(ID).batch().to_json())
    arrivals = inbox.read(wait=0, at_most=10, clock=0)
    assert (len(arrivals.completions), arrivals.malformed, arrivals.rejections) == (1, 1, [])
    assert arrivals.following == {0: 2}


def test_what_names_somebody_is_answered(inbox: Inbox, consumer: FakeConsumer) -> None:
    later = json.loads(Publisher(ID).batch().to_json()) | {"version": 2, "id": "x" * 300}
    consumer.add(json.dumps(later).encode())
    (answer,) = inbox.read(wait=0, at_most=10, clock=0).rejections
    assert (answer.dataset_id, answer.completion_id, answer.reason) == (ID, "x" * 200, RejectionReason.REFUSED)


class Undecided(FakeConsumer):
    """The consumer of a broker that has just started and does not know its groups yet."""

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={0: None})})

    def committed(self, partitions: list[Any], timeout: float) -> list[Any]:
        raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))


@pytest.mark.parametrize("consumer", [Undecided()])
def test_a_broker_that_does_not_know_the_noted_positions_yet_is_asked_again(inbox: Inbox) -> None:
    with pytest.raises(StoreUnavailableError, match=r"topic odf\.completions"):
        inbox.start()
