"""How a service's process talks with whoever started it: readiness and progress on stdout, signals, exit codes.

A child prints lines of JSON: any number of `{"progress": "…"}` and then one `{"ready": true, …}`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

DO_NOT_RESTART = 3
"""The exit code that says: another try will end the same."""


def tell(**facts: object) -> None:
    """Print one line for the process that started this one."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


class StopRequest:
    """Whether to stop: told by SIGTERM or SIGINT, or because the process that started this one is gone."""

    def __init__(self, on_signal: Callable[[], None] = lambda: None) -> None:
        self._told = threading.Event()
        self._parent = os.getppid()
        self._on_signal = on_signal
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._hear())

    def is_wanted(self) -> bool:
        """Whether to stop now."""
        return self._told.is_set() or os.getppid() != self._parent

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until told to stop; whether to stop."""
        self._told.wait(seconds)
        return self.is_wanted()

    def _hear(self) -> None:
        self._told.set()
        self._on_signal()


def lock_or_holder(path: Path) -> IO[str] | str:
    """Take the lock of a folder that one process may use: the open file that holds it, or who has it."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        return f"process {holder or 'unknown'}"
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
