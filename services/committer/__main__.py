"""Run the committer: `python -m services.committer`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from odf_common.service_process import DO_NOT_RESTART, StopRequest, tell
from odf_common.settings import Settings

_RETRY_S = 0.5

_log = logging.getLogger("committer")

app = typer.Typer(
    name="committer", add_completion=False, pretty_exceptions_enable=False, context_settings={"max_content_width": 100}
)


@app.command(
    help="Commit finished micro-batches from topic odf.completions to their datasets, and announce new blocks on "
    "odf.blocks. One committer serves an installation; a second one takes over, and the first stops with exit code 3.",
    epilog="Example: ODF_KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 python -m services.committer --data-dir .odf",
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

    configure_logs("committer")
    settings = Settings() if data_dir is None else Settings(data_dir=data_dir)
    if bootstrap_servers is not None:
        settings = settings.model_copy(update={"kafka_bootstrap_servers": bootstrap_servers})
    raise typer.Exit(_run(settings))


def _run(settings: Settings) -> int:
    from odf_common.catalog.catalog import Catalog
    from odf_common.catalog.errors import FencedError
    from odf_common.endpoints import bootstrap_servers
    from odf_common.errors import OdfError
    from odf_common.repository.repository import Repository
    from services.committer.messenger import StoppedError
    from services.committer.service import CommitterService

    stop = StopRequest()
    try:
        brokers = bootstrap_servers(settings)
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        if not _topics_exist(brokers, stop):
            return 0
        with Catalog.open(settings.catalog_url) as catalog:
            repository = Repository.at(settings.repository_location, catalog)
            service = CommitterService(repository, settings.staging_folder, brokers, stopping=stop.is_wanted)
            service.start()
            tell(ready=True, epoch=service.epoch.number)
            _log.info("serving with epoch %d", service.epoch.number)
            service.run()
            service.finish()
    except StoppedError:
        pass
    except FencedError as error:
        _log.error("%s", error)
        return DO_NOT_RESTART
    except OdfError as error:
        _log.error("%s", error)
        return 1
    _log.info("stopped")
    return 0


def _topics_exist(brokers: str, stop: StopRequest) -> bool:
    """Create what topics there must be, as soon as the broker answers; False if told to stop before."""
    from odf_common.errors import StoreUnavailableError
    from odf_common.kafka.clients import admin_client
    from odf_common.kafka.topics import SERVICE_TOPICS, create_topics

    admin = admin_client(brokers)
    while not stop.is_wanted():
        try:
            create_topics(admin, SERVICE_TOPICS)
        except StoreUnavailableError as error:
            _log.warning("waiting for the broker at %s: %s", brokers, error)
            stop.wait(_RETRY_S)
        else:
            return True
    return False


if __name__ == "__main__":
    app()
