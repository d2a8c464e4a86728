"""Child processes that cannot outlive their parent, also when that is killed and has no time to say so."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Runs in the child before the program does. (A `preexec_fn` would do the same, but is not safe beside threads.)
_TIE = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"cannot run {sys.argv[2]}: {error.strerror}")
"""


def tied_to_this_process(command: Sequence[str | Path]) -> list[str]:
    """A command that runs this one, and that the kernel kills when the thread that starts it ends.

    The thread, not the process: start such children from a thread that lives long. Only Linux can do this; elsewhere
    the command comes back as it is.
    """
    plain = list(map(str, command))
    if sys.platform != "linux":
        return plain
    return [sys.executable, "-I", "-S", "-c", _TIE, str(os.getpid()), *plain]
