from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from rich.console import Console

from services.supervisor.run import _Show, _watch
from services.supervisor.status import ServiceState, ServiceStatus

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


def states(committer: ServiceState, detail: str | None = None) -> list[ServiceStatus]:
    return [
        ServiceStatus(name="committer", state=committer, since=NOW, detail=detail),
        ServiceStatus(name="gateway", state=ServiceState.READY, since=NOW),
    ]


class FakeSupervisor:
    """Runs for as long as there is something to say."""

    endpoints = None

    def __init__(self, *told: list[ServiceStatus]) -> None:
        self._told = list(told)

    @property
    def runs(self) -> bool:
        return bool(self._told)

    def states(self) -> list[ServiceStatus]:
        return self._told.pop(0)


@pytest.fixture
def console() -> Console:
    return Console(width=200)


def watch(console: Console, *told: list[ServiceStatus]) -> tuple[ServiceStatus | None, list[str]]:
    supervisor: Any = FakeSupervisor(*told)
    with mock.patch("services.supervisor.run._REFRESH_S", 0.001), console.capture() as captured:
        failed = _watch(supervisor, _Show(console), threading.Event())
    return failed, captured.get().splitlines()


def test_a_service_that_is_lost_later_is_told_once(console: Console) -> None:
    fenced = states(ServiceState.FAILED, "another one took over")
    failed, lines = watch(console, states(ServiceState.READY), fenced, fenced)
    assert failed is None
    assert len(lines) == 1
    assert lines[0].startswith("odf: committer has ended and is not started again: another one took over")


def test_one_that_fails_at_the_start_ends_the_watch(console: Console) -> None:
    fenced = states(ServiceState.FAILED, "no Java")
    assert watch(console, states(ServiceState.STARTING), fenced) == (fenced[0], [])
