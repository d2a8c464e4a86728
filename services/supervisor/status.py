"""What is known of a service from outside."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime


class ServiceState(enum.StrEnum):
    """How a service is."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    """It ended by itself and will be started again."""
    FAILED = "failed"
    """It ended, and starting it again cannot help."""
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """One line of the supervisor's table."""

    name: str
    state: ServiceState
    since: datetime
    pid: int | None = None
    restarts: int = 0
    memory: int | None = None  # bytes, with its own child processes
    url: str | None = None
    detail: str | None = None
    """What it is busy with, or why it ended."""
