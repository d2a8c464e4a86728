"""One run of a service: its process, what it says on stdout, its log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from odf_common.child_process import tied_to_this_process
from services.supervisor.logs import last_problem, open_log
from services.supervisor.services import Service

_LEFTOVERS_TIMEOUT_S = 5.0
_POLL_S = 0.02


class Child:
    """A process in a session of its own: Ctrl-C does not reach it, and its whole family can be ended."""

    def __init__(
        self, service: Service, *, environment: Mapping[str, str], log: Path, on_news: Callable[[], None]
    ) -> None:
        """Start it. Only from the thread that lives as long as the supervisor: the kernel ends the child with it."""
        self.service = service
        self.ready: dict[str, Any] | None = None
        self.progress: str | None = None
        self._log = log
        self._on_news = on_news
        self._metrics = environment.get("PROMETHEUS_MULTIPROC_DIR")
        self._started = time.monotonic()
        with open_log(log) as stderr:
            self._log_start = stderr.tell()
            self._process = subprocess.Popen(  # noqa: S603 - a command of our own
                tied_to_this_process(service.command),
                env={**environment, **service.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._listen, name=f"{service.name} stdout", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def lived_s(self) -> float:
        """How long ago it was started."""
        return time.monotonic() - self._started

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def why_it_ended(self) -> str:
        """Its last error, else how it went."""
        code = self._process.returncode
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by {_signal_name(-code)}"
        problem = last_problem(self._log, start=self._log_start)
        return problem if problem and code >= 0 else how

    def memory(self) -> int | None:
        """The bytes in memory of it and all below it; None if it has just ended."""
        try:
            process = psutil.Process(self.pid)
            return sum(_memory_of(one) for one in [process, *process.children(recursive=True)])
        except psutil.NoSuchProcess:
            return None

    def stop(self) -> None:
        """Ask it to end; end it by force when it takes too long; leave nobody of its family."""
        self._process.terminate()
        try:
            self._process.wait(self.service.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self._kill_family()
        self.clean_up()

    def clean_up(self) -> None:
        """After its end: give what it started a moment to end too, then end it."""
        give_up = time.monotonic() + _LEFTOVERS_TIMEOUT_S
        while _family_lives(self.pid) and time.monotonic() < give_up:
            time.sleep(_POLL_S)
        self._kill_family()
        self._process.wait()
        self._reader.join(_LEFTOVERS_TIMEOUT_S)
        self._forget_gauges()

    def _forget_gauges(self) -> None:
        """What the process measured of itself is over; its counters go on counting in the sums."""
        if self._metrics is not None:
            for file in Path(self._metrics).glob(f"gauge_live*_{self.pid}.db"):
                file.unlink(missing_ok=True)

    def _kill_family(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                self._hear(line)

    def _hear(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if message.get("ready") is True:
            self.ready, self.progress = message, None
        elif isinstance(message.get("progress"), str):
            self.progress = message["progress"]
        self._on_news()


def _family_lives(group: int) -> bool:
    """Whether any process of the group runs; one that nobody has waited for yet does not."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return any(_belongs_to(process, group) for process in psutil.process_iter())


def _belongs_to(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def _memory_of(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
