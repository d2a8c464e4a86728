"""A running system, and what tests of whole ways do with it: datasets, messages, and what became of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.records import PushSourceBinding, SourceSettings
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import ChainState
from odf_common.crash_points import CRASH_AT
from odf_common.data.slices import read_slice
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.kafka.clients import producer
from odf_common.kafka.topics import DEAD_LETTERS
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote
from odf_common.metadata.events import DatasetKind, MetadataEvent
from odf_common.metadata.manifests import DatasetSnapshot
from odf_common.repository.repository import Dataset, Repository
from odf_common.repository.snapshots import create_from_snapshot
from odf_common.settings import Settings
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from services.cli.positions import read_positions
from services.cli.topic_reading import ends, opened_consumer, read_to_end
from services.cli.verify import verified
from services.supervisor.services import Service
from services.supervisor.status import ServiceState, ServiceStatus
from services.supervisor.supervisor import Supervisor

DEADLINE_S = 180.0

_WITH_CRASH_POINT = 'ODF_CRASH_AT=$(cat "$0" 2>/dev/null); rm -f "$0"; export ODF_CRASH_AT; exec "$@"'


def eventually(
    condition: Callable[[], object], what: Callable[[], object] = lambda: "", *, within_s: float = 0
) -> None:
    give_up = time.monotonic() + (within_s or DEADLINE_S)
    while not condition():
        assert time.monotonic() < give_up, what()
        time.sleep(0.05)


@dataclass
class RunningSystem:
    """The services of a data folder, and the repository that they work on."""

    settings: Settings
    supervisor: Supervisor
    repository: Repository
    starts: dict[str, int] = field(default_factory=dict)

    @property
    def servers(self) -> str:
        return self.supervisor.kafka_bootstrap_servers

    def status(self, service: str) -> ServiceStatus:
        return next(each for each in self.supervisor.states() if each.name == service)

    def kill(self, service: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End a service and wait until it serves again."""
        before = self.status(service)
        assert before.pid is not None
        os.kill(before.pid, how)
        eventually(lambda: self.status(service).restarts > before.restarts)
        self.wait_ready(service)

    def wait_ready(self, service: str) -> None:
        eventually(lambda: self.status(service).state is ServiceState.READY, lambda: self.status(service))

    def add(self, name: str, *events: MetadataEvent, **settings: Any) -> IngestedDataset:
        """What `odf add` does."""
        alias = DatasetAlias.parse(name)
        snapshot = DatasetSnapshot(name=alias, kind=DatasetKind.ROOT, metadata=events)
        dataset = create_from_snapshot(
            self.repository,
            snapshot,
            system_time=Timestamp.now(),
            key_pair=KeyPair.generate(),
            settings=SourceSettings(**({"batch_time_s": 0.0} | settings)),
        )
        return IngestedDataset(self, dataset)


@dataclass(frozen=True)
class IngestedDataset:
    """A dataset that the system ingests into."""

    system: RunningSystem
    dataset: Dataset

    @property
    def state(self) -> ChainState:
        return MetadataChain(self.dataset.objects, self.dataset.refs).state()

    def binding(self, source: str = "default") -> PushSourceBinding:
        bindings = self.system.repository.catalog.push_sources(self.dataset.entry.id)
        return next(each for each in bindings if each.source_name == source)

    def configure(self, source: str = "default", **settings: Any) -> None:
        """What `odf source set` does."""
        before = self.binding(source)
        with self.system.repository.catalog.begin() as transaction:
            transaction.bind_push_source(replace(before, settings=before.settings.model_copy(update=settings)))

    def publish(
        self,
        *values: bytes | None,
        source: str = "default",
        partition: int = 0,
        headers: Mapping[str, str] | None = None,
        time: str | None = None,
    ) -> None:
        """Send messages to the source's topic, once that is there; their timestamp is `time` (RFC 3339), or now."""
        topic = self.binding(source).topic
        self.wait_for_topic(topic)
        sender = producer(self.system.servers)
        timestamp_ms = 0 if time is None else Timestamp.parse(time).ns // 1_000_000
        for value in values:
            sender.produce(topic, value, partition=partition, headers=dict(headers or {}), timestamp=timestamp_ms)
        assert sender.flush(DEADLINE_S) == 0

    def wait_for_topic(self, topic: str) -> None:
        from odf_common.kafka.clients import admin_client

        admin = admin_client(self.system.servers)
        eventually(lambda: topic in admin.list_topics(timeout=10).topics, lambda: f"no topic {topic}")

    def rows(self) -> list[dict[str, Any]]:
        """All rows, in the order of their offsets."""
        return [row for table in self.tables() for row in table.to_pylist()]

    def tables(self) -> list[pa.RecordBatch]:
        """The records of all slices, oldest first."""
        blocks = list(MetadataChain(self.dataset.objects, self.dataset.refs).blocks())
        return [batch for block in reversed(blocks) for batch in self._records(block.block.event)]

    def _records(self, event: MetadataEvent) -> Iterator[pa.RecordBatch]:
        data = getattr(event, "new_data", None)
        if data is not None:
            with self.dataset.objects.open_file(ObjectKind.DATA, data.physical_hash) as file:
                yield from read_slice(file, vocabulary=self.state.vocabulary)

    def events(self) -> list[MetadataEvent]:
        """What the chain says, oldest first."""
        return [each.block.event for each in MetadataChain(self.dataset.objects, self.dataset.refs).blocks()][::-1]

    def has_read_all(self, source: str = "default") -> bool:
        """Whether the chain is where the topic ends."""
        with opened_consumer(self.system.servers) as reader:
            end = ends(reader, self.binding(source).topic)
        read = read_positions(self.state, source)
        return all(read.get(partition, 0) >= position for partition, position in end.items())

    def wait_until_read(self, *sources: str) -> None:
        for source in sources or ("default",):
            eventually(
                lambda source=source: self.has_read_all(source),  # type: ignore[misc]
                lambda source=source: f"{source}: {self.binding(source)}, {self.state.source_state(source)}",  # type: ignore[misc]
            )

    def wait_for_rows(self, count: int) -> list[dict[str, Any]]:
        eventually(lambda: self.state.next_offset >= count, lambda: f"{self.state.next_offset} of {count} rows")
        return self.rows()

    def wait_for_problem(self, text: str, source: str = "default") -> None:
        eventually(lambda: text in (self.binding(source).problem or ""), lambda: self.binding(source))

    def dead_letters(self) -> list[tuple[DeadLetterNote, bytes]]:
        """Each once: after a crash one may have been sent twice."""
        found: dict[object, tuple[DeadLetterNote, bytes]] = {}
        with opened_consumer(self.system.servers) as reader:
            for message in read_to_end(reader, DEAD_LETTERS):
                is_letter = DEAD_LETTER_HEADER in dict(message.headers() or [])
                if is_letter and message.key() == str(self.dataset.entry.id).encode():
                    note = DeadLetterNote.from_json(_header(message.headers()))
                    found[note.topic_id, note.partition, note.offset, note.index] = note, message.value() or b""
        return list(found.values())

    def verified(self) -> Mapping[str, Any]:
        """What `odf verify` says, which must be good."""
        found = verified(self.dataset)
        assert found["ok"], found
        return found


def _header(headers: Any) -> bytes:
    found: bytes = dict(headers)[DEAD_LETTER_HEADER]
    return found


@contextmanager
def running_system(
    data_dir: Path,
    services: Sequence[Service] | None = None,
    *,
    kafka: str | None = None,
    on_change: Callable[[ServiceStatus], None] = lambda _: None,
    **ports: int,
) -> Iterator[RunningSystem]:
    """Start services, all of them unless some are named; stop them in the end."""
    settings = Settings(data_dir=data_dir, kafka_bootstrap_servers=kafka)
    data_dir.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(settings, services, on_change=on_change, **ports)
    with Catalog.open(settings.catalog_url) as catalog, supervisor:
        supervisor.wait_ready()
        yield RunningSystem(settings, supervisor, Repository.at(settings.repository_location, catalog))


def service(name: str, module: str) -> Service:
    return Service(name=name, command=(sys.executable, "-m", module), stop_timeout_s=30.0)


COMMITTER = service("committer", "services.committer")
INGEST = service("ingest", "streaming_jobs.ingest")


@dataclass
class CrashPoints:
    """Lets the runs of a service die, each at the next of some points; the runs after that live."""

    service: Service
    folder: Path
    points: Iterable[str]

    def __post_init__(self) -> None:
        assert self.service.environment.get(CRASH_AT) is None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.left = list(self.points)
        self._arm()

    @property
    def _file(self) -> Path:
        return (self.folder / f"{self.service.name}.crash-at").absolute()

    @property
    def dying(self) -> Service:
        """The service to be run: it takes the point of its run from a file, once."""
        return replace(
            self.service, command=("/bin/sh", "-c", _WITH_CRASH_POINT, str(self._file), *self.service.command)
        )

    @property
    def is_over(self) -> bool:
        return not self.left

    def on_change(self, status: ServiceStatus) -> None:
        """To be told by the supervisor, before it starts the next run."""
        if status.name == self.service.name and status.state is ServiceState.WAITING and self.left:
            self.left.pop(0)
            self._arm()

    def _arm(self) -> None:
        if self.left:
            self._file.write_text(self.left[0])
