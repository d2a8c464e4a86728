"""How far the reading of a chain has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

_LOG_EVERY_S = 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a state has come with reading the chain."""

    what: str
    done: int
    """Rows."""
    total: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.done / self.seconds if self.seconds else 0.0


OnProgress = Callable[[Progress], None]


class Reading:
    """Tells how a reading goes on: at its beginning, every few seconds, and at its end."""

    def __init__(self, what: str, total: int, on_progress: OnProgress | None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._on_progress = on_progress
        self._began = self._told = time.monotonic()

    def read(self, rows: int) -> None:
        """Take note of more rows."""
        self._done += rows
        now = time.monotonic()
        progress = Progress(self._what, self._done, self._total, now - self._began)
        if self._on_progress is not None:
            self._on_progress(progress)
        if now - self._told >= _LOG_EVERY_S or (self._done == self._total and now - self._began >= _LOG_EVERY_S):
            self._told = now
            _log.info("reading state", state=self._what, rows=self._done, of=self._total, rate=round(progress.rate))
