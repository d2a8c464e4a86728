"""One service over all its runs: when it is started, started again, given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from services.supervisor.child import Child
from services.supervisor.restarts import GiveUp, Restart, after_exit
from services.supervisor.services import Service
from services.supervisor.status import ServiceState, ServiceStatus


class Keeper:
    """Keeps one service alive. All but `status` is called by the supervisor's own thread."""

    def __init__(
        self,
        service: Service,
        *,
        environment: Mapping[str, str],
        log: Path,
        on_news: Callable[[], None],
        on_change: Callable[[ServiceStatus], None],
    ) -> None:
        self.service = service
        self._environment = environment
        self._log = log
        self._on_news = on_news
        self._on_change = on_change
        self._child: Child | None = None
        self._failures = 0
        self._restarts = 0
        self._start_at = 0.0
        self._status = ServiceStatus(name=service.name, state=ServiceState.STARTING, since=datetime.now(UTC))

    def start(self) -> None:
        """Start a run of it."""
        try:
            self._child = Child(self.service, environment=self._environment, log=self._log, on_news=self._on_news)
        except OSError as error:
            self._ended(str(error), after_exit(1, lived_s=0.0, failures=self._failures))
        else:
            self._becomes(ServiceState.STARTING)

    def look(self) -> None:
        """See how it is, and do what is to be done about that."""
        if self._status.state is ServiceState.WAITING and time.monotonic() >= self._start_at:
            self._restarts += 1
            self.start()
        if self._child is None:
            return
        code = self._child.exit_code()
        if code is not None:
            child, self._child = self._child, None
            child.clean_up()
            self._ended(child.why_it_ended(), after_exit(code, lived_s=child.lived_s, failures=self._failures))
        elif self._child.ready is not None and self._status.state is ServiceState.STARTING:
            self._becomes(ServiceState.READY, url=self._child.ready.get("url"))
        elif self._status.state is ServiceState.STARTING and self._child.progress != self._status.detail:
            self._becomes(ServiceState.STARTING, detail=self._child.progress)

    def stop(self) -> None:
        """End it for good."""
        if self._child is not None:
            self._becomes(ServiceState.STOPPING)
            self._child.stop()
            self._child = None
        if self._status.state is not ServiceState.FAILED:
            self._becomes(ServiceState.STOPPED)

    def status(self, *, with_memory: bool = False) -> ServiceStatus:
        """How it is now."""
        status, child = self._status, self._child
        return replace(status, memory=child.memory()) if with_memory and child is not None else status

    def _ended(self, why: str, decision: Restart | GiveUp) -> None:
        match decision:
            case GiveUp():
                self._becomes(ServiceState.FAILED, detail=why)
            case Restart(delay_s=delay_s, failures=failures):
                self._failures = failures
                self._start_at = time.monotonic() + delay_s
                self._becomes(ServiceState.WAITING, detail=f"{why}; starts again in {delay_s:g} s")

    def _becomes(self, state: ServiceState, *, detail: str | None = None, url: str | None = None) -> None:
        self._status = ServiceStatus(
            name=self.service.name,
            state=state,
            since=self._status.since if state is self._status.state else datetime.now(UTC),
            pid=self._child.pid if self._child else None,
            restarts=self._restarts,
            url=url,
            detail=detail,
        )
        self._on_change(self._status)
