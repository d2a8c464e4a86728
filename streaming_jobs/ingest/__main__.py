"""Run the ingest job: `python -m streaming_jobs.ingest`."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from odf_common.errors import OdfError, StoreUnavailableError
from odf_common.jars import JavaNotFoundError
from odf_common.service_process import DO_NOT_RESTART, StopRequest, tell
from odf_common.settings import Settings
from streaming_jobs.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming_jobs.ingest.events import Events

_RETRY_S = 0.3

_log = structlog.get_logger("ingest")


def main() -> int:
    """Serve until told to stop; returns the exit code."""
    from odf_common.logs import configure_logs

    settings = _settings()
    configure_logs("ingest")
    stop = StopRequest()
    try:
        _serve(settings, stop)
    except JavaNotFoundError as error:
        _log.error(str(error))
        return DO_NOT_RESTART
    except OdfError as error:
        _log.error(str(error))
        return 1
    return 0


def _settings() -> Settings:
    parser = argparse.ArgumentParser(
        prog="python -m streaming_jobs.ingest",
        description="Read push topics with Spark Structured Streaming, stage slices and propose them to the committer.",
        epilog="Example: ODF_KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 python -m streaming_jobs.ingest --data-dir .odf",
    )
    parser.add_argument("--data-dir", type=Path, help="the folder for everything that is kept (ODF_DATA_DIR or .odf)")
    given = parser.parse_args()
    return Settings() if given.data_dir is None else Settings(data_dir=given.data_dir)


def _serve(settings: Settings, stop: StopRequest) -> None:
    from odf_common.endpoints import bootstrap_servers

    servers = bootstrap_servers(settings)
    # Spark takes seconds to start, and so does a broker: wait for both at once.
    with ThreadPoolExecutor(1) as pool:
        events = pool.submit(_events, servers, stop)
        spark = _spark()
        try:
            heard = events.result()
            if heard is not None:
                with closing(heard):
                    _run(settings, servers, spark, heard, stop)
        finally:
            spark.stop()


def _spark() -> SparkSession:
    from streaming_jobs.spark_session import start_spark

    return start_spark(SparkSettings(), app_name="odf-ingest", on_progress=lambda line: tell(progress=line))


def _events(servers: str, stop: StopRequest) -> Events | None:
    """The connection to the broker, as soon as that answers; None if told to stop before."""
    from odf_common.kafka.clients import admin_client
    from odf_common.kafka.topics import SERVICE_TOPICS, create_topics
    from streaming_jobs.ingest.events import Events

    admin = admin_client(servers)
    while not stop.is_wanted():
        try:
            create_topics(admin, SERVICE_TOPICS)
            return Events(servers)
        except StoreUnavailableError as error:
            _log.info("waiting for the broker", servers=servers, reason=str(error))
            stop.wait(_RETRY_S)
    return None


def _run(settings: Settings, servers: str, spark: SparkSession, events: Events, stop: StopRequest) -> None:
    from odf_common.catalog.catalog import Catalog
    from odf_common.repository.repository import Repository
    from odf_common.uploads import UploadArea
    from streaming_jobs.ingest.context import JobContext
    from streaming_jobs.ingest.job import IngestJob
    from streaming_jobs.ingest.messenger import Messenger
    from streaming_jobs.ingest.topics import PushTopics

    settings.data_dir.mkdir(parents=True, exist_ok=True)
    with Catalog.open(settings.catalog_url) as catalog, closing(Messenger(servers)) as messenger:
        context = JobContext(
            spark=spark,
            bootstrap_servers=servers,
            repository=Repository.at(settings.repository_location, catalog),
            topics=PushTopics(servers),
            messenger=messenger,
            staging=settings.staging_folder,
            indexes=settings.data_dir / "index",
            uploads=UploadArea(settings.uploads_folder),
            max_payload_size=settings.max_upload_size,
        )
        tell(ready=True)
        IngestJob(context, events).run(stop.is_wanted)
    _log.info("stopped")


if __name__ == "__main__":
    sys.exit(main())
