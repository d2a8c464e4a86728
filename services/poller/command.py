"""Commands that end with everything they have started, however it hides, and also when the poller is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO

_PATIENCE_S = 10.0

# Stands between the poller and the command. Whatever the command starts and leaves behind becomes a child of this
# process, also from sessions of its own, and is killed when the command ends, when the poller says so (SIGTERM), and
# when the poller's thread is gone.
_KEEPER = """\
import ctypes, os, resource, signal, sys
PARENT_DIES, ADOPT = 1, 36
system = ctypes.CDLL(None)

class Ended(BaseException):
    pass

def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Ended

def children():
    own = str(os.getpid())
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    if file.read().rpartition(b")")[2].split()[1].decode() == own:
                        yield int(name)
            except OSError:
                pass

def kill_all():
    while True:
        for child in list(children()):
            try:
                os.kill(child, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return

def run(command):
    try:
        os.execvp(command[0], command)
    except (OSError, ValueError) as error:
        print(f"cannot run {command[0]}: {getattr(error, 'strerror', None) or error}", file=sys.stderr, flush=True)
    os._exit(1)

status = None
try:
    signal.signal(signal.SIGTERM, end)
    system.prctl(ADOPT, 1)
    system.prctl(PARENT_DIES, int(signal.SIGTERM))
    if os.getppid() != int(sys.argv[1]):
        os._exit(1)
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        system.prctl(PARENT_DIES, int(signal.SIGKILL))
        if os.getppid() != keeper:
            os._exit(1)
        run(sys.argv[2:])
    os.close(0)
    while status is None:
        ended, found = os.waitpid(-1, 0)
        if ended == child:
            status = found
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
except Ended:
    pass
kill_all()
if status is not None and os.WIFEXITED(status):
    os._exit(os.WEXITSTATUS(status))
number = signal.SIGKILL if status is None else os.WTERMSIG(status)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if number != signal.SIGKILL:
    signal.signal(number, signal.SIG_DFL)
os.kill(os.getpid(), number)
"""


@contextmanager
def running(
    command: Sequence[str], *, stdin: int, stdout: IO[bytes], stderr: IO[bytes], env: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A command without a shell; it and all that it has started is gone behind the block."""
    process = subprocess.Popen(  # noqa: S603 - no shell; what may run is decided by whoever runs the poller
        _kept(command), stdin=stdin, stdout=stdout, stderr=stderr, env=env, start_new_session=True
    )
    try:
        yield process
    finally:
        _end(process)


def _kept(command: Sequence[str]) -> list[str]:
    """Only Linux can do this; elsewhere the command is on its own."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _KEEPER, str(os.getpid()), *command]


def _end(process: subprocess.Popen[bytes]) -> None:
    if sys.platform != "linux":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
            return
        process.kill()
    process.wait()
