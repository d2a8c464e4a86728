"""Server-sent events as a response that ends when the client goes, or takes nothing any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from services.gateway import metrics
from services.gateway.gateway import Gateway

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # proxies must not wait for more
}


class EventResponse(Response):
    """Sends texts as they come. The stream was counted by whoever made this; it is counted off when it ends."""

    media_type = "text/event-stream"

    def __init__(self, gateway: Gateway, texts: AsyncIterator[str]) -> None:
        super().__init__(status_code=200, headers=_HEADERS, media_type=self.media_type)
        del self.headers["content-length"]
        self._gateway = gateway
        self._texts = texts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        metrics.SUBSCRIBERS.inc()
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            metrics.SUBSCRIBERS.dec()
            self._gateway.streams -= 1
            for task in (sending, leaving):
                task.cancel()
                with suppress(asyncio.CancelledError, TimeoutError, OSError):
                    await task

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for text in self._texts:
            # A client that takes nothing for so long would keep its place for ever.
            async with asyncio.timeout(self._gateway.settings.send_timeout_s):
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
