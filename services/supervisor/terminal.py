"""The services on the terminal: a table that stays in place, or plain lines where there is no terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rich.table import Table
from rich.text import Text

from services.supervisor.status import ServiceState, ServiceStatus

_COLOURS = {
    ServiceState.STARTING: "yellow",
    ServiceState.READY: "green",
    ServiceState.WAITING: "red",
    ServiceState.FAILED: "bold red",
    ServiceState.STOPPING: "yellow",
    ServiceState.STOPPED: "dim",
}


def services_table(statuses: list[ServiceStatus], *, now: datetime | None = None) -> Table:
    """One line per service."""
    now = now or datetime.now(UTC)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("service")
    table.add_column("state")
    for name in ("since", "pid", "restarts", "memory"):
        table.add_column(name, justify="right")
    table.add_column("")
    for status in statuses:
        table.add_row(
            status.name,
            Text(status.state.value, style=_COLOURS[status.state]),
            shown_duration(now - status.since),
            str(status.pid or ""),
            str(status.restarts),
            shown_memory(status.memory),
            Text(status.url or status.detail or "", overflow="ellipsis", no_wrap=True),
        )
    return table


def plain_line(status: ServiceStatus) -> str:
    """A change of a service as one line."""
    parts = [f"{status.since:%H:%M:%S}", f"{status.name:<9}", status.state.value]
    if status.pid is not None:
        parts.append(f"pid {status.pid}")
    if status.restarts:
        parts.append(f"restarts {status.restarts}")
    return "  ".join([*parts, *filter(None, (status.url, status.detail))])


def lost_line(status: ServiceStatus) -> str:
    """What to know of a service that a running system goes on without."""
    why = status.detail or "its log says why"
    return f"odf: {status.name} has ended and is not started again: {why}. The others go on; restart `odf up` for all"


def shown_duration(elapsed: timedelta) -> str:
    """`7s`, `3m 20s`, `5h 2m`, `3d 4h`."""
    seconds = max(0, int(elapsed.total_seconds()))
    for size, unit, smaller_size, smaller in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            return f"{seconds // size}{unit} {seconds % size // smaller_size}{smaller}"
    return f"{seconds}s"


def shown_memory(size: int | None) -> str:
    """Bytes as whole mebibytes."""
    return "" if size is None else f"{size >> 20} MiB"
