"""Places at which a process can be told to die, so that tests see what happens then.

`ODF_CRASH_AT=committer.after-blocks` kills the process the first time it gets there, as kill -9 does; `…:3` the third
time. Without the variable nothing happens.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

CRASH_AT = "ODF_CRASH_AT"

_seen: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Die here if told so."""
    wanted = os.environ.get(CRASH_AT)
    if wanted is None:
        return
    point, _, times = wanted.partition(":")
    if point != name:
        return
    _seen[name] += 1
    if _seen[name] >= int(times or 1):
        os.kill(os.getpid(), signal.SIGKILL)
