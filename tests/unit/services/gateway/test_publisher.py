from __future__ import annotations

from services.gateway.messages import PositionRange
from services.gateway.publisher import ranges_of


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
