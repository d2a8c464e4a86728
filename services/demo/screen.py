"""The replay on the terminal: a table that stays in place, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from services.demo.tally import Tally, percentiles_ms
from services.supervisor.status import ServiceState, ServiceStatus
from services.supervisor.terminal import plain_line, services_table

_TABLE_EVERY_S = 0.25
_LINE_EVERY_S = 2.0
_RATE_WINDOW_S = 5.0
_LATENCIES_SHOWN = 5_000  # the newest of each source


class Screen:
    """Shows what goes on. On stderr, so that stdout holds the result alone."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._shown_at = 0.0
        self._rate = Rate()
        self._addresses: Sequence[tuple[str, str]] = ()
        self._told: dict[str, tuple[ServiceState | None, float]] = {}

    @property
    def is_terminal(self) -> bool:
        """Whether somebody watches."""
        return self._console.is_terminal

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep a place for the table while this lasts."""
        if not self.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=False) as self._live:
            yield
        self._live = None

    def say(self, text: str) -> None:
        """One line that stays."""
        self._console.print(text, markup=False, soft_wrap=True)

    def service_changed(self, status: ServiceStatus) -> None:
        """A service starts, serves, fails … On a terminal the table shows it, or a line when something is wrong."""
        if self.is_terminal:
            wanted = status.state in (ServiceState.WAITING, ServiceState.FAILED)
        else:
            wanted = self._is_news(status)
        if wanted:
            self.say(plain_line(status))

    def _is_news(self, status: ServiceStatus) -> bool:
        """Whether a line is worth it: progress comes for every file that is fetched, a line of it every few seconds."""
        before, at = self._told.get(status.name, (None, 0.0))
        now = time.monotonic()
        if status.state is before and now - at < _LINE_EVERY_S:
            return False
        self._told[status.name] = (status.state, now)
        return True

    def services(self, statuses: list[ServiceStatus]) -> None:
        """The services while they start."""
        if self._live is not None:
            self._live.update(services_table(statuses), refresh=True)

    def announce(self, addresses: Sequence[tuple[str, str]], events: int) -> None:
        """Where the system is, which stays below the table, and what is going to be replayed."""
        self._addresses = addresses
        if self._live is None:
            for name, address in addresses:
                self.say(f"{name:<9}{address}")
        if not events:
            self.say("all events have been replayed already; with another --data-dir they begin anew")

    def replay(self, aliases: Sequence[str], tallies: Sequence[Tally], state: str, *, force: bool = False) -> None:
        """How the replay is, as often as it is good to look at."""
        moment = time.monotonic()
        if not force and moment - self._shown_at < (_TABLE_EVERY_S if self._live else _LINE_EVERY_S):
            return
        self._shown_at = moment
        published = sum(each.published for each in tallies)
        rate = self._rate.of(published, moment)
        if self._live is not None:
            self._live.update(self._view(aliases, tallies, rate, state), refresh=True)
        else:
            self.say(line(tallies, rate, state))

    def _view(self, aliases: Sequence[str], tallies: Sequence[Tally], rate: float, state: str) -> Group:
        return Group(
            replay_table(aliases, tallies),
            Text(f"{rate:,.0f} events/s, {state}"),
            Text(""),
            *(Text.assemble((f"{name:<9}", "dim"), address) for name, address in self._addresses),
        )


class Rate:
    """Events per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, count: int, at: float) -> float:
        """The rate, now that the count is this."""
        self._seen.append((at, count))
        while len(self._seen) > 2 and self._seen[1][0] <= at - _RATE_WINDOW_S:
            self._seen.popleft()
        began, before = self._seen[0]
        return (count - before) / (at - began) if at > began else 0.0


def line(tallies: Sequence[Tally], rate: float, state: str) -> str:
    """The state of a replay as one line."""
    hashes = ", ".join(f"…{each.newest.block_hash.short}" for each in tallies if each.newest is not None)
    return (
        f"{sum(each.published for each in tallies):,} published, {rate:,.0f}/s, "
        f"{sum(each.rows for each in tallies):,} rows in {sum(each.blocks for each in tallies):,} blocks, "
        f"lag {sum(each.lag for each in tallies):,}, latency {_latency(tallies)}, newest {hashes or '-'}, {state}"
    )


def replay_table(aliases: Sequence[str], tallies: Sequence[Tally]) -> Table:
    """One line per dataset."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("dataset")
    for name in ("published", "rows", "blocks", "lag", "p50 / p99"):
        table.add_column(name, justify="right")
    table.add_column("event time")
    table.add_column("newest block")
    for alias, tally in zip(aliases, tallies, strict=True):
        newest = tally.newest
        table.add_row(
            alias,
            f"{tally.published:,}",
            f"{tally.rows:,}",
            f"{tally.blocks:,}",
            f"{tally.lag:,}",
            _latency([tally]),
            f"{newest.watermark.to_datetime():%d %b %H:%M}" if newest and newest.watermark else "-",
            Text(f"…{str(newest.block_hash)[-16:]}" if newest else "-", style="cyan"),
        )
    return table


def _latency(tallies: Sequence[Tally]) -> str:
    found = percentiles_ms(tallies, last=_LATENCIES_SHOWN)
    return "-" if found is None else f"{found[0]:,.0f} / {found[1]:,.0f} ms"
