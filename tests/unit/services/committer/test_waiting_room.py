from __future__ import annotations

from odf_common.identity.did import DatasetId
from services.committer.waiting_room import Received, RoomLimits, WaitingRoom
from tests.streams import Publisher

ONE, TWO = DatasetId(bytes(32)), DatasetId(bytes([1] * 32))
LIMITS = RoomLimits(per_dataset=3, total=5, total_size=1000, seconds=10)


def received(dataset_id: DatasetId, count: int, *, at: float = 0.0, size: int = 10, first: int = 0) -> list[Received]:
    batches = Publisher(dataset_id).batches_of(count)
    return [Received(batch, 0, first + number, size, at) for number, batch in enumerate(batches)]


def test_who_is_seated_waits_for_the_dataset() -> None:
    room = WaitingRoom(LIMITS)
    early = received(ONE, 2)
    assert room.seat(ONE, early, now=1) == []
    assert room.of(ONE) == tuple(early)
    assert (room.of(TWO), room.datasets(), len(room)) == ((), [ONE], 2)


def test_seating_again_replaces() -> None:
    room = WaitingRoom(LIMITS)
    early = received(ONE, 3)
    room.seat(ONE, early, now=1)
    room.seat(ONE, early[1:], now=1)
    assert room.of(ONE) == tuple(early[1:])
    room.seat(ONE, [], now=1)
    assert (room.datasets(), len(room)) == ([], 0)


def test_nobody_waits_for_ever() -> None:
    room = WaitingRoom(LIMITS)
    early = received(ONE, 1, at=5.0)
    assert room.seat(ONE, early, now=14.9) == []
    assert room.seat(ONE, early, now=15.0) == early


def test_a_dataset_has_so_many_seats() -> None:
    early = received(ONE, 4)
    assert WaitingRoom(LIMITS).seat(ONE, early, now=0) == early[3:]


def test_the_room_has_so_many_seats() -> None:
    room = WaitingRoom(LIMITS)
    room.seat(ONE, received(ONE, 3), now=0)
    others = received(TWO, 3)
    assert room.seat(TWO, others, now=0) == others[2:]


def test_the_room_has_so_much_room() -> None:
    room = WaitingRoom(LIMITS)
    room.seat(ONE, received(ONE, 1, size=900), now=0)
    others = received(TWO, 2, size=60)
    assert room.seat(TWO, others, now=0) == others[1:]


def test_the_same_proposal_waits_once() -> None:
    room = WaitingRoom(LIMITS)
    assert room.seat(ONE, received(ONE, 1) + received(ONE, 1, first=7), now=0) == []
    assert [each.position for each in room.of(ONE)] == [0]


def test_the_oldest_message_is_known_for_each_partition() -> None:
    room = WaitingRoom(LIMITS)
    assert room.first_position(0) is None
    room.seat(ONE, received(ONE, 2, first=7), now=0)
    room.seat(TWO, received(TWO, 1, first=4), now=0)
    assert (room.first_position(0), room.first_position(1)) == (4, None)
