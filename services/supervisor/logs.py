"""The services' log files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO

MAX_SIZE = 16 << 20  # bytes; a larger file is put aside at the next start
_TAIL_SIZE = 64 << 10


def open_log(path: Path) -> BinaryIO:
    """The file to append to, which begins anew when it has grown large; the one before is kept beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > MAX_SIZE:
        os.replace(path, path.with_suffix(".log.1"))
    return path.open("ab")


def last_problem(path: Path, *, start: int) -> str | None:
    """The last error that was logged since the file had `start` bytes, else the last line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start, size - _TAIL_SIZE))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    problems = [text for line in lines if (text := _problem_in(line))]
    return problems[-1] if problems else (lines[-1].strip() if lines else None)


def _problem_in(line: str) -> str | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or entry.get("level") not in {"error", "critical"}:
        return None
    return str(entry.get("event", ""))
