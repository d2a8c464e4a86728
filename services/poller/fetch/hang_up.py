"""Hanging up in time: timeouts of sockets count from byte to byte, and a server that drips may hold us for ever."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from services.poller.fetched import FetchJob

_LOOK_EVERY_S = 0.2


@dataclass(slots=True)
class HangUp:
    """Ends all connections of a fetch when it takes too long or is no longer wanted."""

    job: FetchJob
    _sockets: list[socket.socket] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> HangUp:
        threading.Thread(target=self._watch, name="hang up", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for each in self._sockets:
            with suppress(OSError):
                each.close()

    def add(self, connection: socket.socket) -> None:
        """Watch a connection, by a handle of our own: encryption takes the one that it is given away."""
        with suppress(OSError):
            self._sockets.append(connection.dup())

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """To be told by the HTTP client of what it does."""
        if event == "connection.connect_tcp.complete":
            self.add(info["return_value"].get_extra_info("socket"))

    def _watch(self) -> None:
        give_up = self.job.started + self.job.settings.fetch_timeout_s
        while not self._is_over.wait(_LOOK_EVERY_S):
            if time.monotonic() > give_up or self.job.stopping():
                for each in list(self._sockets):
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
