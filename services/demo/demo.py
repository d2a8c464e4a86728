"""The demo from start to end: a system of its own, its datasets, the replay, the check."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odf_common.settings import Settings
from services.cli.block_topic import block_feed
from services.cli.opening import opened_repository
from services.cli.verify import verified
from services.demo import recordings
from services.demo.figures import Figures, figures
from services.demo.replay import Options, Replay
from services.demo.screen import Screen
from services.demo.targets import FLIGHTS, WEATHER, ensure_topics, ensured, topic_ends
from services.supervisor import ServiceState, Supervisor, SystemFailedError
from services.supervisor.run import stop_signals

if TYPE_CHECKING:
    from odf_common.repository.repository import Repository

_START_TIMEOUT_S = 600.0  # the first start fetches jars, over whatever network there is
_STUCK_AFTER_S = 120.0  # without a new block while events wait for one
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it; no figures if it was stopped before the replay began."""

    figures: Figures | None
    interrupted: bool


def run(settings: Settings, options: Options, screen: Screen, *, port: int | None = None) -> Outcome:
    """Run the demo until Ctrl-C, or until all is in blocks; no process is left.

    Call it from the main thread: it takes the signals.
    """
    recordings.check_installed()
    stopping = threading.Event()
    supervisor = Supervisor(settings, gateway_port=port, on_change=screen.service_changed)
    with stop_signals(stopping):
        supervisor.start()
        try:
            with opened_repository(settings, create=True) as repository:
                found = _Demo(settings, options, screen, supervisor, stopping, repository).run()
        finally:
            screen.say("stopping …")
            supervisor.stop()
    return Outcome(figures=found, interrupted=stopping.is_set())


class _Demo:
    def __init__(
        self,
        settings: Settings,
        options: Options,
        screen: Screen,
        supervisor: Supervisor,
        stopping: threading.Event,
        repository: Repository,
    ) -> None:
        self._settings = settings
        self._options = options
        self._screen = screen
        self._supervisor = supervisor
        self._stopping = stopping
        self._repository = repository
        # Weather first: of the same time, it comes before the flights.
        self._targets = ensured(repository, settings, (WEATHER, FLIGHTS))

    def run(self) -> Figures | None:
        self._screen.say(f"starting on {self._settings.data_dir} …")
        sources = (recordings.weather(), recordings.flights())
        with self._screen.open():
            self._until(self._is_ready, _START_TIMEOUT_S, "the services did not get ready")
            if self._stopping.is_set():
                return None
            servers = self._supervisor.kafka_bootstrap_servers
            ensure_topics(servers, self._repository, self._targets)
            start = topic_ends(servers, self._targets)
            self._catch_up(start)
            with block_feed(servers) as feed:
                replay = Replay(self._targets, sources, start, self._options, servers=servers)
                self._screen.announce(self._addresses(), replay.wanted)
                seconds = replay.run(feed, self._screen, self._stopping)
        return self._checked(replay, seconds)

    def _is_ready(self) -> bool:
        statuses = self._supervisor.states()
        self._screen.services(statuses)
        for status in statuses:
            if status.state is ServiceState.FAILED:
                log = self._settings.data_dir / "logs" / f"{status.name}.log"
                raise SystemFailedError(f"{status.name} could not start: {status.detail} (see {log})")
        return all(status.state is ServiceState.READY for status in statuses)

    def _catch_up(self, ends: Sequence[int]) -> None:
        """Wait for the blocks of what an earlier run sent, so that every block from now on is of this one."""

        def behind() -> int:
            return sum(end - min(each.read_to(), end) for each, end in zip(self._targets, ends, strict=True))

        if left := behind():
            self._screen.say(f"waiting for the blocks of {left:,} events of an earlier run …")
            self._until(lambda: not behind(), _STUCK_AFTER_S, f"no blocks came for {left:,} events of an earlier run")

    def _addresses(self) -> list[tuple[str, str]]:
        endpoints = self._supervisor.endpoints
        assert endpoints is not None, "all services are ready"
        return [
            ("gateway", endpoints.gateway_url),
            ("API", f"{endpoints.gateway_url}/docs"),
            ("metrics", f"{endpoints.gateway_url}/metrics"),
            ("Kafka", endpoints.kafka_bootstrap_servers),
            ("topics", ", ".join(each.topic for each in self._targets)),
            ("data", str(self._settings.data_dir)),
        ]

    def _until(self, true: Callable[[], bool], timeout_s: float, complaint: str) -> None:
        """Wait for it, or for the signal to stop."""
        give_up = time.monotonic() + timeout_s
        while not true() and not self._stopping.wait(_POLL_S):
            if time.monotonic() > give_up:
                raise SystemFailedError(f"{complaint} within {timeout_s:.0f} s; `odf doctor` says where it is stuck")

    def _checked(self, replay: Replay, seconds: float) -> Figures:
        if others := sum(each.of_others for each in replay.tallies):
            self._screen.say(
                f"somebody else wrote {others:,} messages to these topics: what is counted from blocks includes theirs"
            )
        self._screen.say("checking every block, slice and source, as `odf verify` does …")
        checked = [verified(self._repository.open(entry.id)) for entry in self._repository.datasets()]
        return figures(replay.tallies, blocks=replay.blocks(), seconds=seconds, checked=checked)
