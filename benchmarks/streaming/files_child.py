"""Runs a command and prints how long it took and how much memory: `files_child.py COMMAND…`.

A small process of its own, as a child counts the memory that its parent had at the fork as its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    """Pass on what the command says and how it ends; the last line of stdout has the figures."""
    began = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps({"seconds": seconds, "memory": usage.ru_maxrss << 10}), flush=True)
    raise SystemExit(process.returncode)


if __name__ == "__main__":
    main()
