from __future__ import annotations

from services.cli.lag import rows_per_second, unread


def test_what_is_behind_the_read_positions_is_unread() -> None:
    assert unread({0: (0, 10), 1: (0, 3), 2: (5, 9)}, {0: 4, 1: 3}) == {0: (4, 10), 2: (5, 9)}


def test_a_topic_that_was_made_anew_has_nothing_unread_before_the_old_position() -> None:
    assert unread({0: (0, 2)}, {0: 7}) == {}


def test_the_rate_counts_the_blocks_of_the_window() -> None:
    assert rows_per_second([(100, 60), (70, 60), (10, 1000)], now=100) == 2
    assert rows_per_second([], now=100) == 0


def test_the_rate_of_very_many_blocks_is_that_of_the_newest() -> None:
    assert rows_per_second([(100, 6), (98, 6), (96, 6)], now=100, max_blocks=2) == 6
