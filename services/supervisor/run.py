"""What `odf up` does: run the system on the terminal until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from odf_common.errors import OdfError
from odf_common.settings import Settings
from services.broker.ports import PortTakenError
from services.supervisor.services import Service
from services.supervisor.status import ServiceState, ServiceStatus
from services.supervisor.supervisor import Supervisor
from services.supervisor.terminal import lost_line, plain_line, services_table

_REFRESH_S = 1.0


def run(
    settings: Settings,
    *,
    port: int | None = None,
    kafka_port: int | None = None,
    console: Console | None = None,
    services: Sequence[Service] | None = None,
) -> int:
    """Run until SIGINT or SIGTERM; 0 then, 1 if the system did not come up. `port` is the gateway's.

    Call it from the main thread: it takes the signals.
    """
    console = console or Console(highlight=False)
    show = _Show(console)
    supervisor = Supervisor(settings, services, kafka_port=kafka_port, gateway_port=port, on_change=show.change)
    stopping = threading.Event()
    with stop_signals(stopping):
        try:
            supervisor.start()
        except (OdfError, PortTakenError) as error:
            Console(stderr=True, highlight=False).print(f"odf: {error}", markup=False)
            return 1
        with show.of(supervisor):
            failed = _watch(supervisor, show, stopping)
            supervisor.stop()
    if failed is not None:
        Console(stderr=True, highlight=False).print(
            f"odf: {failed.name} could not start: {failed.detail} (see {settings.data_dir / 'logs' / failed.name}.log)",
            markup=False,
        )
        return 1
    return 0


def _watch(supervisor: Supervisor, show: _Show, stopping: threading.Event) -> ServiceStatus | None:
    """Wait for a signal (None), or for a service that gives up before the system was ever complete."""
    complete = False
    lost: set[str] = set()
    while supervisor.runs and not stopping.wait(_REFRESH_S):
        statuses = supervisor.states()
        show.refresh(statuses)
        if not complete and all(status.state is ServiceState.READY for status in statuses):
            complete = True
            show.complete(supervisor)
        failed = [status for status in statuses if status.state is ServiceState.FAILED]
        if failed and not complete:
            return failed[0]
        for status in failed:
            if status.name not in lost:
                lost.add(status.name)
                show.lost(status)
    return None


class _Show:
    """The table on a terminal, or lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._supervisor: Supervisor | None = None

    @contextmanager
    def of(self, supervisor: Supervisor) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=False) as live:
            self._live, self._supervisor = live, supervisor
            yield
            self.refresh(supervisor.states())
            self._live = None

    def change(self, status: ServiceStatus) -> None:
        if self._live is not None and self._supervisor is not None:
            self.refresh(self._supervisor.states())
        elif not self._console.is_terminal:
            self._console.print(plain_line(status), markup=False, soft_wrap=True)

    def refresh(self, statuses: list[ServiceStatus]) -> None:
        if self._live is not None:
            self._live.update(services_table(statuses), refresh=True)

    def lost(self, status: ServiceStatus) -> None:
        self._console.print(lost_line(status), markup=False, soft_wrap=True)

    def complete(self, supervisor: Supervisor) -> None:
        if (found := supervisor.endpoints) is not None:
            self._console.print(
                f"Kafka {found.kafka_bootstrap_servers}  gateway {found.gateway_url}  Ctrl-C stops",
                markup=False,
                soft_wrap=True,
            )


@contextmanager
def stop_signals(stopping: threading.Event) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and the end of the terminal set the event while this lasts."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, lambda *_: stopping.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
