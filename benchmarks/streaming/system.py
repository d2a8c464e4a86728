"""What is measured: one broker for all, and our system on it while it is its turn."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.streaming.events import COLUMNS, EVENTS, fill_topic, write_file
from benchmarks.streaming.notifications import Notifications
from odf_common.catalog.catalog import Catalog
from odf_common.catalog.records import SourceSettings
from odf_common.identity.did import DatasetId
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import AddPushSource, DatasetKind
from odf_common.metadata.manifests import DatasetSnapshot
from odf_common.metadata.sources import MergeStrategyAppend, ReadStepNdJson
from odf_common.repository.repository import Repository
from odf_common.repository.snapshots import create_from_snapshot
from odf_common.settings import Settings
from odf_common.timestamp import Timestamp
from services.broker import EmbeddedBroker
from services.supervisor import Supervisor

BACKLOG = "bench.backlog"
BACKLOG_EVENTS = 2 * EVENTS
SOURCE = AddPushSource(source_name="default", read=ReadStepNdJson(ddl_schema=COLUMNS), merge=MergeStrategyAppend())


class Ground:
    """What all parts of a run share; each thing is made when it is first asked for."""

    def __init__(self) -> None:
        self._resources = ExitStack()
        self.folder = Path(self._resources.enter_context(tempfile.TemporaryDirectory(prefix="odf-bench-")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._resources.close()

    @cached_property
    def broker(self) -> EmbeddedBroker:
        """The broker, for us and for the peers."""
        return self._resources.enter_context(EmbeddedBroker(self.folder / "broker"))

    @property
    def servers(self) -> str:
        """Where it is."""
        return self.broker.bootstrap_servers

    @cached_property
    def events_file(self) -> Path:
        """The events as a file."""
        return write_file(self.folder / "events.ndjson")

    @cached_property
    def backlog(self) -> str:
        """The topic that holds the events, several times over so that there are enough steady batches."""
        fill_topic(self.servers, BACKLOG, count=BACKLOG_EVENTS)
        return BACKLOG


@dataclass(frozen=True, slots=True)
class System:
    """Our system while it runs."""

    settings: Settings
    supervisor: Supervisor
    notifications: Notifications
    servers: str

    @property
    def gateway_url(self) -> str:
        """Where the gateway is."""
        assert self.supervisor.endpoints is not None
        return self.supervisor.endpoints.gateway_url

    def add_dataset(self, name: str, topic: str, settings: SourceSettings) -> DatasetId:
        """A dataset whose source reads a topic; the running job notices it."""
        return add_dataset(self.settings, name, topic, settings)

    def remove_dataset(self, dataset_id: DatasetId) -> None:
        """Delete a dataset, so that its query does not disturb what is measured next."""
        with opened(self.settings) as repository:
            repository.delete(dataset_id)


def add_dataset(settings: Settings, name: str, topic: str, source_settings: SourceSettings) -> DatasetId:
    """A dataset whose source reads a topic."""
    snapshot = DatasetSnapshot(name=DatasetAlias.parse(name), kind=DatasetKind.ROOT, metadata=(SOURCE,))
    with opened(settings) as repository:
        dataset = create_from_snapshot(
            repository,
            snapshot,
            system_time=Timestamp.now(),
            key_pair=KeyPair.generate(),
            settings=source_settings,
            topic=topic,
        )
    return dataset.entry.id


@contextmanager
def opened(settings: Settings) -> Iterator[Repository]:
    """The repository of a data folder."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    with Catalog.open(settings.catalog_url) as catalog:
        yield Repository.at(settings.repository_location, catalog)


@contextmanager
def system(ground: Ground, name: str) -> Iterator[System]:
    """Our committer, job and gateway on a fresh data folder; the broker is everybody's."""
    settings = Settings(data_dir=ground.folder / name, kafka_bootstrap_servers=ground.servers)
    with Supervisor(settings, gateway_port=0) as supervisor:
        supervisor.wait_ready()
        with Notifications(ground.servers) as notifications:
            yield System(settings, supervisor, notifications, ground.servers)


def module_command(module: str, *arguments: str | Path) -> list[str]:
    """A module of this package as a process of its own."""
    return [sys.executable, "-m", f"benchmarks.streaming.{module}", *map(str, arguments)]
