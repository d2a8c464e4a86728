"""Memory of processes and of those that they started, each page counted once however many share it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import psutil

_EVERY_S = 0.5


def families(pids: Iterable[int]) -> dict[str, int]:
    """PSS in bytes of each process of some families, by pid and name."""
    return {f"{each.pid} {_name(each)}": size for each in _members(pids) if (size := _size(each))}


def total(pids: Iterable[int]) -> int:
    """PSS in bytes of some families together."""
    return sum(map(_size, _members(pids)))


def _members(pids: Iterable[int]) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for pid in pids:
        try:
            parent = psutil.Process(pid)
            found += [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
    return found


def _size(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0


def _name(process: psutil.Process) -> str:
    """The module or the class that runs."""
    try:
        command = process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return "gone"
    words = [word for word in command if word.startswith(("services.", "streaming_jobs.", "kafka.", "org.apache."))]
    return words[0] if words else " ".join(command[-2:])[-40:]


class Peak:
    """Samples the memory of some processes while it is entered."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="memory", daemon=True)
        self.size = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self.size = max(self.size, total(self._pids))
