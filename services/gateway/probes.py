"""Asking whether something answers, however often and however many want to know."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from odf_common.errors import OdfError
from odf_common.kafka.clients import admin_client, translated

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

OK = "ok"

_WAIT_S = 3.0
_KEEP_S = 1.0
_BROKER_S = 2.0


class Probe:
    """One question at a time, in one thread, whose answer counts for a moment: requests cannot make threads pile up."""

    def __init__(
        self, ask: Callable[[], None], *, wait_s: float = _WAIT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._wait_s = wait_s
        self._clock = clock
        self._answer = ""
        self._fresh_until = float("-inf")
        self._asking: asyncio.Task[str] | None = None

    async def answer(self) -> str:
        """`ok`, or what is wrong."""
        if self._clock() < self._fresh_until:
            return self._answer
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._asked())
        try:
            async with asyncio.timeout(self._wait_s):
                # Who gives up waiting does not end the question: its thread would go on all the same.
                return await asyncio.shield(self._asking)
        except TimeoutError:
            return f"no answer within {self._wait_s:g} s"

    async def _asked(self) -> str:
        try:
            await asyncio.to_thread(self._ask)
        except OdfError as error:
            self._answer = str(error)
        else:
            self._answer = OK
        self._fresh_until = self._clock() + _KEEP_S
        return self._answer


class BrokerQuestion:
    """Asks the broker, always with the same client. Not for two threads at once."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._client: AdminClient | None = None

    def __call__(self) -> None:
        """Return if the broker answers, otherwise StoreUnavailableError."""
        self._client = self._client or admin_client(self._bootstrap_servers)
        with translated("the broker"):
            self._client.list_topics(timeout=_BROKER_S)
