from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console

from services.demo.screen import Screen, replay_table
from services.demo.tally import Tally
from services.supervisor.status import ServiceState, ServiceStatus

STARTING = ServiceStatus(name="broker", state=ServiceState.STARTING, since=datetime(2026, 1, 1, tzinfo=UTC))


def a_screen(*, terminal: bool) -> tuple[Screen, io.StringIO]:
    written = io.StringIO()
    return Screen(Console(file=written, force_terminal=terminal, width=120, color_system=None)), written


def test_without_a_terminal_each_state_has_its_line_and_progress_not_one_per_file() -> None:
    screen, written = a_screen(terminal=False)
    for file in range(50):
        screen.service_changed(replace(STARTING, detail=f"fetching file {file}"))
    screen.service_changed(replace(STARTING, state=ServiceState.READY))
    assert [line.split()[2] for line in written.getvalue().splitlines()] == ["starting", "ready"]


def test_on_a_terminal_only_what_is_wrong_gets_a_line_of_its_own() -> None:
    screen, written = a_screen(terminal=True)
    screen.service_changed(STARTING)
    assert written.getvalue() == ""
    screen.service_changed(replace(STARTING, state=ServiceState.WAITING, detail="killed"))
    assert "killed" in written.getvalue()


def test_what_was_replayed_before_is_said() -> None:
    screen, written = a_screen(terminal=False)
    screen.announce([("Kafka", "127.0.0.1:9092")], 0)
    assert "127.0.0.1:9092" in written.getvalue()
    assert "all events have been replayed already" in written.getvalue()


def test_the_table_has_a_line_for_each_dataset() -> None:
    tally = Tally(base=0)
    tally.hand_over(0.0)
    tally.confirm(0)
    written = io.StringIO()
    Console(file=written, width=120).print(replay_table(["nyc.weather", "nyc.flights"], [tally, Tally(base=7)]))
    lines = written.getvalue().splitlines()
    assert [line.split()[:5] for line in lines[1:]] == [
        ["nyc.weather", "1", "0", "0", "1"],
        ["nyc.flights", "0", "0", "0", "0"],
    ]
