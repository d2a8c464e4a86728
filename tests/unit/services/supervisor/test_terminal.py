from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from services.supervisor.status import ServiceState, ServiceStatus
from services.supervisor.terminal import lost_line, plain_line, services_table, shown_duration

SINCE = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


def test_each_service_has_one_line() -> None:
    statuses = [
        ServiceStatus(name="broker", state=ServiceState.READY, since=SINCE, pid=7, memory=300 << 20),
        ServiceStatus(name="ingest", state=ServiceState.WAITING, since=SINCE, restarts=2, detail="it [broke]"),
    ]
    console = Console(width=120)
    with console.capture() as captured:
        console.print(services_table(statuses, now=SINCE + timedelta(seconds=200)))
    lines = captured.get().splitlines()
    assert len(lines) == 3
    assert lines[1].split() == ["broker", "ready", "3m", "20s", "7", "0", "300", "MiB"]
    assert lines[2].split() == ["ingest", "waiting", "3m", "20s", "2", "it", "[broke]"]


def test_a_change_is_one_line() -> None:
    status = ServiceStatus(name="gateway", state=ServiceState.READY, since=SINCE, pid=8, restarts=1, url="http://a:1")
    assert plain_line(status) == "12:00:00  gateway    ready  pid 8  restarts 1  http://a:1"


def test_a_service_that_is_gone_for_good_is_one_line() -> None:
    status = ServiceStatus(name="committer", state=ServiceState.FAILED, since=SINCE, detail="another one took over")
    assert lost_line(status) == (
        "odf: committer has ended and is not started again: another one took over. "
        "The others go on; restart `odf up` for all"
    )


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-1, "0s"), (59, "59s"), (60, "1m 0s"), (3_700, "1h 1m"), (90_000, "1d 1h")]
)
def test_durations_are_short(seconds: int, shown: str) -> None:
    assert shown_duration(timedelta(seconds=seconds)) == shown
