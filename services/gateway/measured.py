"""Counts every request where the server begins to answer it; streams are counted when they begin."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway import metrics


class MeasuredApp:
    """ASGI middleware: a wrapper of responses would stand between streams and their clients."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Routes, not paths: what clients make up must not become labels.
                route = getattr(scope.get("route"), "path", "none")
                metrics.REQUESTS.labels(route, _method(scope), str(message["status"])).inc()
                metrics.REQUEST_SECONDS.labels(route).observe(time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, measured)


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} else "other"
