"""The prepare step Pipe: a command between two files, without a shell, for a bounded time."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, BinaryIO, cast

from services.poller.command import running
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
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    feeder = _Feeder(file)
    try:
        with running(command, stdin=subprocess.PIPE, stdout=out, stderr=problems, env=environment) as process:
            feeder.feed(process)
            _watch(process, command[0], (out, problems), limits)
    finally:
        feeder.wait()
    if feeder.failure is not None:
        raise feeder.failure
    if process.returncode != 0:
        how = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
        raise PrepareError(f"the command {command[0]!r} ended with {how}{_said(problems)}")


def _watch(process: subprocess.Popen[bytes], name: str, written: Sequence[IO[bytes]], limits: Limits) -> None:
    give_up = time.monotonic() + limits.timeout_s
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_EVERY_S)
        # The input's bound does not bound the output, so a ratio would say nothing here.
        limits.check(sum(os.fstat(each.fileno()).st_size for each in written), packed=limits.max_size)
        if process.returncode is not None:
            return
        if time.monotonic() > give_up:
            raise PrepareError(f"the command {name!r} took longer than {limits.timeout_s:g} s")


def _said(problems: IO[bytes]) -> str:
    end = problems.seek(0, 2)
    problems.seek(max(0, end - _SHOWN_STDERR))
    text = problems.read().decode(errors="replace").strip()
    return f": {text}" if text else ""


class _Feeder:
    """Writes the input while the command runs; one that does not read all of it is fine."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._thread: threading.Thread | None = None
        self.failure: Exception | None = None

    def feed(self, process: subprocess.Popen[bytes]) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._write, args=(process,), name="pipe", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when nothing is written any more."""
        if self._thread is not None:
            self._thread.join()

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError), process.stdin as stdin:
                while chunk := self._file.read(_CHUNK_SIZE):
                    stdin.write(chunk)
        except Exception as error:  # told to whoever waits for the command
            self.failure = error
            process.terminate()
