"""The prepare step Pipe: a command between two files, without a shell, for a bounded time."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, BinaryIO, cast

from odf_common.child_process import tied_to_this_process
from services.poller.errors import PrepareError
from services.poller.prepare import Limits

_CHUNK_SIZE = 256 << 10
_LOOK_EVERY_S = 0.05
_SHOWN_STDERR = 2_000  # bytes

# A command gets what programs need to run, not what the poller knows.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")


@contextmanager
def piped(command: Sequence[str], file: BinaryIO, limits: Limits) -> Iterator[BinaryIO]:
    """What the command writes to stdout; PrepareError if it fails, writes too much or takes too long."""
    with tempfile.TemporaryFile(dir=limits.folder) as out, tempfile.TemporaryFile(dir=limits.folder) as problems:
        _run(command, file, out, problems, limits)
        out.seek(0)
        yield cast(BinaryIO, out)


def _run(command: Sequence[str], file: BinaryIO, out: IO[bytes], problems: IO[bytes], limits: Limits) -> None:
    if not command:
        raise PrepareError("the prepare step Pipe names no command")
    process = subprocess.Popen(  # noqa: S603 - no shell, and allowed by whoever runs the poller
        tied_to_this_process(command),
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=problems,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        start_new_session=True,
    )
    feeder = _Feeder(file, process)
    try:
        feeder.start()
        _watch(process, command[0], out, limits)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        feeder.join()
    if feeder.failure is not None:
        raise feeder.failure
    if process.returncode != 0:
        how = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
        raise PrepareError(f"the command {command[0]!r} ended with {how}{_said(problems)}")


def _watch(process: subprocess.Popen[bytes], name: str, out: IO[bytes], limits: Limits) -> None:
    give_up = time.monotonic() + limits.timeout_s
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_EVERY_S)
        # The input's bound does not bound the output, so a ratio would say nothing here.
        limits.check(os.fstat(out.fileno()).st_size, packed=limits.max_size)
        if process.returncode is not None:
            return
        if time.monotonic() > give_up:
            raise PrepareError(f"the command {name!r} took longer than {limits.timeout_s:g} s")


def _said(problems: IO[bytes]) -> str:
    end = problems.seek(0, 2)
    problems.seek(max(0, end - _SHOWN_STDERR))
    text = problems.read().decode(errors="replace").strip()
    return f": {text}" if text else ""


class _Feeder(threading.Thread):
    """Writes the input while the command runs; one that does not read all of it is fine."""

    def __init__(self, file: BinaryIO, process: subprocess.Popen[bytes]) -> None:
        super().__init__(name="pipe", daemon=True)
        self._file = file
        self._process = process
        self.failure: Exception | None = None

    def run(self) -> None:
        """Write until the end, or until nobody reads."""
        assert self._process.stdin is not None
        try:
            with suppress(BrokenPipeError), self._process.stdin as stdin:
                while chunk := self._file.read(_CHUNK_SIZE):
                    stdin.write(chunk)
        except Exception as error:  # told to whoever waits for the command
            self.failure = error
            self._process.kill()
