"""Datasets with push sources, blocks as a committer makes them, and a producer without a broker."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import KafkaError
from fastapi import FastAPI

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.records import PushSourceBinding, SourceSettings
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.identity.references import DatasetAlias
from odf_common.messages.appending import appended_block
from odf_common.messages.block_appended import BlockAppended
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData, AddPushSource, DatasetKind, MetadataEvent, Seed, SetPollingSource
from odf_common.metadata.sources import (
    FetchStepUrl,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStep,
    ReadStepNdJson,
)
from odf_common.repository.repository import Dataset, Repository
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal
from services.gateway.app import create_app
from services.gateway.gateway import Gateway
from services.gateway.publisher import OnDelivery, Publisher
from services.gateway.settings import GatewaySettings
from services.gateway.uploads import Uploads
from tests.unit.odf_common.repository.chains import an_id

NOON = Timestamp.parse("2024-01-01T12:00:00Z")
NDJSON = {"content-type": "application/x-ndjson"}


def a_polling_source() -> SetPollingSource:
    return SetPollingSource(
        fetch=FetchStepUrl(url="https://example.com"), read=ReadStepNdJson(), merge=MergeStrategyAppend()
    )


def a_snapshot_source(read: ReadStep | None = None) -> AddPushSource:
    merge = MergeStrategySnapshot(primary_key=("a",))
    return AddPushSource(source_name="default", read=read or ReadStepNdJson(), merge=merge)


def a_source(name: str = "default", read: ReadStep | None = None) -> AddPushSource:
    return AddPushSource(source_name=name, read=read or ReadStepNdJson(), merge=MergeStrategyAppend())


@contextmanager
def a_repository(folder: Path) -> Iterator[Repository]:
    with Catalog.open(f"sqlite:///{folder}/catalog.sqlite") as catalog:
        yield Repository.at(folder / "datasets", catalog)


def a_dataset(
    repository: Repository,
    alias: str = "cities",
    *sources: AddPushSource | SetPollingSource,
    number: int = 1,
    bound: bool = True,
) -> Dataset:
    """A dataset with sources, each bound to the topic `push.<alias>.<source>`."""
    dataset_id = an_id(number)
    folder = repository.folder(dataset_id)
    chain = MetadataChain(folder.objects, folder.refs)
    state = chain.state()
    blocks = []
    sources = sources or (a_source(),)
    events: list[MetadataEvent] = [Seed(dataset_id=dataset_id, dataset_kind=DatasetKind.ROOT), *sources]
    for event in events:
        block = seal(next_block(state, event, system_time=NOON))
        blocks.append(block)
        state = state.followed_by(block.block, block.hash)
    chain.stage(blocks)
    dataset = repository.create(dataset_id, DatasetAlias.parse(alias), DatasetKind.ROOT, head=blocks[-1].hash)
    for source in sources if bound else ():
        bind(repository, dataset, source.source_name if isinstance(source, AddPushSource) else "default")
    return dataset


def bind(repository: Repository, dataset: Dataset, source_name: str, settings: SourceSettings | None = None) -> None:
    topic = f"push.{str(dataset.entry.alias).replace('/', '.')}.{source_name}"
    binding = PushSourceBinding(
        dataset_id=dataset.entry.id, source_name=source_name, topic=topic, settings=settings or SourceSettings()
    )
    with repository.catalog.begin() as transaction:
        transaction.bind_push_source(binding)


def append(dataset: Dataset, *events: MetadataEvent) -> list[BlockAppended]:
    """Add blocks and tell what the committer would."""
    chain = MetadataChain(dataset.objects, dataset.refs)
    told = []
    for event in events:
        encoded = seal(next_block(chain.state(), event, system_time=NOON))
        chain.append([encoded])
        told.append(BlockAppended.of(appended_block(dataset.entry.id, dataset.entry.alias, encoded)))
    return told


def covering(topic: str, start: int, end: int, *, source: str = "default", partition: int = 0, **more: Any) -> AddData:
    """A batch of which all records were unreadable."""
    fields = {"topic_id": "id", "records": end - start, "dead_letters": end - start, **more}
    offsets = KafkaOffsets(topic=topic, start={partition: start}, next={partition: end}, **fields)
    return AddData(new_source_state=offsets.to_state(source), new_watermark=NOON)


def watermarks(count: int, *, after: int = 0) -> list[AddData]:
    return [AddData(new_watermark=NOON.plus_seconds(after + number)) for number in range(1, count + 1)]


class FakeMessage:
    def __init__(self, partition: int, offset: int) -> None:
        self._place = (partition, offset)

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]


class FakeProducer:
    """Delivers at once, to one partition; or fails, or does not answer."""

    def __init__(
        self,
        *,
        error: int | None = None,
        full: bool = False,
        first_offset: int = 0,
        on_produce: Callable[[], object] = object,
    ) -> None:
        self.sent: list[tuple[str, bytes, int]] = []
        self.headers: list[dict[str, str]] = []
        self.error = error
        self.full = full
        self.on_produce: Callable[[], object] = object
        self._callbacks: list[Callable[[], None]] = []
        self._offsets: dict[str, int] = defaultdict(lambda: first_offset)
        self._changed = threading.Condition()

    def produce(
        self,
        topic: str,
        value: bytes,
        *,
        on_delivery: OnDelivery,
        timestamp: int = 0,
        headers: Sequence[tuple[str, Any]] = (),
    ) -> None:
        if self.full:
            raise BufferError
        self.sent.append((topic, value, timestamp))
        self.headers.append({name: content.decode() for name, content in headers})
        message: Any = FakeMessage(0, self._offsets[topic])
        self._offsets[topic] += 1
        error = None if self.error is None else KafkaError(self.error)
        self.on_produce()
        with self._changed:
            self._callbacks.append(lambda: on_delivery(error, message))
            self._changed.notify()

    def poll(self, timeout: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._callbacks, min(timeout, 0.01))
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
        return len(callbacks)

    def flush(self, timeout: float) -> int:
        return self.poll(0)


@asynccontextmanager
async def a_gateway(
    repository: Repository,
    producer: FakeProducer | None = None,
    *,
    uploads: Path | None = None,
    max_upload_size: int = 1 << 30,
    **settings: Any,
) -> AsyncIterator[Gateway]:
    with tempfile.TemporaryDirectory() as folder:
        publisher = Publisher(lambda: producer or FakeProducer())
        given = GatewaySettings(cache_s=0, **settings)
        area = Uploads(uploads or Path(folder), max_upload_size, given.max_uploads_size)
        try:
            yield Gateway.of(given, repository, publisher, area, bootstrap_servers="127.0.0.1:1")
        finally:
            publisher.close()
            area.close()


def an_app(gateway: Gateway) -> FastAPI:
    """The application around a gateway that is open already."""
    app = create_app(gateway.settings, lambda: None)  # type: ignore[arg-type, return-value]
    app.state.gateway = gateway
    return app


def a_client(gateway: Gateway) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(an_app(gateway), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


def numbers(events: Sequence[BlockAppended]) -> list[int]:
    return [event.data.sequence_number for event in events]


async def status_of_raw(gateway: Gateway, headers: Mapping[str, str], content: bytes) -> int:
    """The answer to headers that no client would send."""
    messages = [{"type": "http.request", "body": content, "more_body": False}]
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/cities/ingest",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")] + [(k.encode(), v.encode("latin-1")) for k, v in headers.items()],
    }

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await an_app(gateway)(scope, receive, send)
    return int(sent[0]["status"])


async def post(
    repository: Repository,
    path: str = "/cities/ingest",
    content: bytes | AsyncIterator[bytes] = b'{"a":1}\n',
    *,
    producer: FakeProducer | None = None,
    headers: Mapping[str, str] = NDJSON,
    **settings: Any,
) -> httpx.Response:
    async with a_gateway(repository, producer, **settings) as gateway, a_client(gateway) as client:
        return await client.post(path, content=content, headers=dict(headers))


async def wait_while(
    repository: Repository,
    happens: Callable[[Gateway], None],
    timeout: float = 10,
    *,
    first_offset: int = 0,
    content: bytes = b"{}",
    headers: Mapping[str, str] = NDJSON,
    uploads: Path | None = None,
) -> httpx.Response:
    """Publish and wait for the commit; something happens as soon as the payload is with the broker."""
    producer = FakeProducer(first_offset=first_offset)
    loop = asyncio.get_running_loop()
    async with a_gateway(repository, producer, uploads=uploads) as gateway, a_client(gateway) as client:
        producer.on_produce = lambda: loop.call_soon_threadsafe(happens, gateway)
        path = f"/cities/ingest?wait=committed&timeout={timeout}"
        return await client.post(path, content=content, headers=dict(headers))
