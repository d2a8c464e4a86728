"""`python -m services.broker`: run the embedded broker until told to stop."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from odf_common.errors import OdfError
from odf_common.jars import JavaNotFoundError
from odf_common.logs import configure_logs
from odf_common.service_process import DO_NOT_RESTART, StopRequest, tell
from odf_common.settings import Settings
from services.broker.broker import BrokerRunsError, EmbeddedBroker
from services.broker.configuration import DEFAULT_HEAP_SIZE
from services.broker.ports import PortTakenError

_POLL_S = 0.2

_log = logging.getLogger("broker")

app = typer.Typer(
    name="broker", add_completion=False, pretty_exceptions_enable=False, context_settings={"max_content_width": 100}
)


@app.command(
    help="Run Apache Kafka as one node on this machine. Its jars are fetched the first time; Java 17 is needed. "
    "Prints one JSON line when it serves; stops on SIGTERM or Ctrl-C. Exit code 3 says that another try cannot help.",
    epilog="Example: python -m services.broker --data-dir .odf --port 9092",
)
def main(
    data_dir: Annotated[
        Path | None, typer.Option(help="Its data is in the folder `broker` of this one. Default: $ODF_DATA_DIR or .odf")
    ] = None,
    port: Annotated[int | None, typer.Option(help="For clients. Default: the last one, or a free one.")] = None,
    heap: Annotated[int, typer.Option(min=64, help="The Java heap in MiB.")] = DEFAULT_HEAP_SIZE >> 20,
) -> None:
    """Serve until told to stop."""
    configure_logs("broker")
    settings = Settings() if data_dir is None else Settings(data_dir=data_dir)
    raise typer.Exit(
        _run(EmbeddedBroker(settings.data_dir / "broker", port=port, heap_size=heap << 20, on_progress=_busy))
    )


def _run(broker: EmbeddedBroker) -> int:
    stop = _Stop()
    try:
        with broker:
            stop.wait_for_it()
            tell(ready=True, bootstrapServers=broker.bootstrap_servers)
            return _serve(broker, stop)
    except _ToldToStopError:
        return 0
    except (BrokerRunsError, JavaNotFoundError) as error:
        _log.error("%s", error)
        return DO_NOT_RESTART
    except (OdfError, PortTakenError) as error:
        _log.error("%s", error)
        return 1


def _serve(broker: EmbeddedBroker, stop: _Stop) -> int:
    while not stop.wait(_POLL_S):
        if (code := broker.poll()) is not None:
            _log.error("Kafka ended by itself with exit code %s, see %s", code, broker.log_file)
            return 1
    return 0


class _ToldToStopError(BaseException):
    """Breaks off a start, which may be fetching jars for a while."""


class _Stop:
    """While the broker starts, a signal breaks that off; later it is noted."""

    def __init__(self) -> None:
        self._starting = True
        self._request = StopRequest(self._break_off)
        self.wait = self._request.wait

    def _break_off(self) -> None:
        if self._starting:
            self._starting = False
            raise _ToldToStopError

    def wait_for_it(self) -> None:
        """From now on a signal is noted only, and `wait` sees it."""
        self._starting = False


def _busy(text: str) -> None:
    _log.info("%s", text)
    tell(progress=text)


if __name__ == "__main__":
    app()
