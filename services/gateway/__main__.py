"""`python -m services.gateway`: serve until told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import uvicorn

from odf_common.catalog.catalog import Catalog
from odf_common.endpoints import bootstrap_servers
from odf_common.errors import OdfError
from odf_common.logs import configure_logs
from odf_common.service_process import DO_NOT_RESTART, tell
from odf_common.settings import Settings
from services.gateway.app import create_app
from services.gateway.gateway import Gateway, running
from services.gateway.settings import DEFAULT_PORT, GatewaySettings

_log = logging.getLogger("gateway")

_MAX_HEADER_SIZE = 32 << 10
_MAX_CONNECTIONS = 2_000
_STOP_S = 5


def listening_socket(settings: GatewaySettings) -> socket.socket:
    """The bound socket: on the port that was asked for, or on the usual one, or else on any."""
    if settings.port is not None:
        return _bound(settings.host, settings.port)
    try:
        return _bound(settings.host, DEFAULT_PORT)
    except OSError:
        return _bound(settings.host, 0)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    """How a client on this machine reaches the socket."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Says when it serves, and lets the streams go as soon as it is told to stop."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Print the one line that the supervisor waits for."""
        await super().startup(sockets)
        tell(ready=True, url=self._url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams and waits first: the server waits for their answers."""
        app = self.config.app
        gateway: Gateway = app.state.gateway  # type: ignore[union-attr]
        gateway.feed.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A stop that was asked for is no failure: the signal is not raised again afterwards."""
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def serve(settings: Settings, gateway_settings: GatewaySettings) -> None:
    """Serve until SIGTERM or SIGINT."""
    servers = bootstrap_servers(settings)
    with Catalog.open(settings.catalog_url) as catalog:

        def opened() -> AbstractAsyncContextManager[Gateway]:
            return running(gateway_settings, settings, catalog, servers)

        listening = listening_socket(gateway_settings)
        config = uvicorn.Config(
            create_app(gateway_settings, opened),
            http="h11",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=_MAX_HEADER_SIZE,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_STOP_S,
        )
        asyncio.run(Server(config, url_of(listening)).serve([listening]))


def main() -> int:
    """The process's exit status: 0 when it was told to stop, 3 when another try cannot help, otherwise 1."""
    configure_logs("gateway")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    settings = Settings()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    try:
        serve(settings, GatewaySettings())
    except OSError as error:
        _log.error("cannot listen: %s; choose another address with ODF_GATEWAY_HOST and ODF_GATEWAY_PORT", error)
        return DO_NOT_RESTART
    except OdfError as error:
        _log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
