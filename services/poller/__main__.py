"""Run the poller: `python -m services.poller`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from odf_common.service_process import DO_NOT_RESTART, StopRequest, lock_or_holder, tell
from odf_common.settings import Settings

_log = logging.getLogger("poller")

app = typer.Typer(
    name="poller", add_completion=False, pretty_exceptions_enable=False, context_settings={"max_content_width": 100}
)


@app.command(
    help="Fetch what the polling sources of datasets name, when their settings say so (`odf source set "
    "--every`, `--cron`), and send it to their topics. `odf pull` polls by hand, with or without this.",
    epilog="Example: ODF_KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 python -m services.poller --data-dir .odf",
)
def main(
    data_dir: Annotated[
        Path | None, typer.Option(help="The folder for everything that is kept. Default: $ODF_DATA_DIR or .odf")
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(help="The Kafka to use. Default: $ODF_KAFKA_BOOTSTRAP_SERVERS, or that of the running system"),
    ] = None,
) -> None:
    """Serve until told to stop."""
    from odf_common.logs import configure_logs

    configure_logs("poller")
    settings = Settings() if data_dir is None else Settings(data_dir=data_dir)
    if bootstrap_servers is not None:
        settings = settings.model_copy(update={"kafka_bootstrap_servers": bootstrap_servers})
    raise typer.Exit(_run(settings))


def _run(settings: Settings) -> int:
    from pydantic import ValidationError

    from odf_common.catalog.catalog import Catalog
    from odf_common.endpoints import bootstrap_servers
    from odf_common.errors import OdfError
    from odf_common.repository.repository import Repository
    from services.poller.lock import polls_folder
    from services.poller.poll import Poller
    from services.poller.service import PollerService
    from services.poller.settings import PollerSettings

    stop = StopRequest()
    try:
        poller_settings = PollerSettings()
    except ValidationError as error:
        _log.error("the settings ODF_POLLER_… are not right: %s", error.errors(include_url=False, include_input=False))
        return DO_NOT_RESTART
    try:
        servers = bootstrap_servers(settings)
        polls_folder(settings).mkdir(parents=True, exist_ok=True)
        lock = lock_or_holder(polls_folder(settings) / "poller.lock")
        if isinstance(lock, str):
            _log.error("another poller works on %s already (%s)", settings.data_dir, lock)
            return DO_NOT_RESTART
        with lock, Catalog.open(settings.catalog_url) as catalog:
            poller = Poller(
                repository=Repository.at(settings.repository_location, catalog),
                settings=settings,
                poller_settings=poller_settings,
                servers=servers,
                stopping=stop.is_wanted,
            )
            tell(ready=True)
            _log.info("serving")
            PollerService(poller).run(stop.wait)
    except OdfError as error:
        _log.error("%s", error)
        return 1
    _log.info("stopped")
    return 0


if __name__ == "__main__":
    app()
