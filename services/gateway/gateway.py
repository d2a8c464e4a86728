"""Everything that one running gateway holds, opened and closed together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.records import DatasetEntry
from odf_common.errors import OdfError
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import DatasetAlias
from odf_common.kafka.clients import admin_client, translated
from odf_common.messages.block_appended import AppendedBlock, BlockAppended
from odf_common.repository.repository import Repository
from odf_common.storage.layout import HEAD
from services.gateway.feed import BlockConsumer, BlockFeed
from services.gateway.ingest import Ingest
from services.gateway.lookup import SourceLookup
from services.gateway.messages import DatasetItem, DatasetList, Readiness
from services.gateway.payloads import Budget
from services.gateway.publisher import Publisher
from services.gateway.replay import History
from services.gateway.settings import GatewaySettings
from services.gateway.streams import EventStream

_log = logging.getLogger(__name__)

_PROBE_S = 3.0
_OK = "ok"
_SOURCE_EVENTS = frozenset({"AddPushSource", "DisablePushSource", "Seed"})


@dataclass(slots=True, kw_only=True)
class Gateway:
    """The parts of a gateway."""

    settings: GatewaySettings
    repository: Repository
    lookup: SourceLookup
    feed: BlockFeed
    history: History
    ingest: Ingest
    bootstrap_servers: str
    streams: int = 0
    _replays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))

    @classmethod
    def of(
        cls, settings: GatewaySettings, repository: Repository, publisher: Publisher, *, bootstrap_servers: str
    ) -> Gateway:
        """A gateway on a repository and a cluster."""
        lookup = SourceLookup(repository, keep_s=settings.cache_s)

        def note(event: BlockAppended) -> None:
            if event.data.event_kind in _SOURCE_EVENTS:
                lookup.forget(event.data.dataset_id)

        feed = BlockFeed(note)
        return cls(
            settings=settings,
            repository=repository,
            lookup=lookup,
            feed=feed,
            history=History(repository),
            ingest=Ingest(
                settings=settings,
                lookup=lookup,
                publisher=publisher,
                feed=feed,
                budget=Budget(settings.max_publishing, settings.max_publishing_size),
            ),
            bootstrap_servers=bootstrap_servers,
        )

    def stream(self) -> EventStream:
        """A stream of events, not begun yet."""
        return EventStream(
            self.feed, self.history, self.settings.heartbeat_s, self.settings.max_pending_events, self._replays
        )

    def datasets(self, *, after: DatasetAlias | None, limit: int) -> DatasetList:
        """A page of datasets. Reads storage: call it in a thread."""
        catalog = self.repository.catalog
        topics: dict[str, dict[str, str]] = {}
        for binding in catalog.push_sources():
            topics.setdefault(str(binding.dataset_id), {})[binding.source_name] = binding.topic
        items: list[DatasetItem] = []
        for entry in catalog.dataset_page(after=after, limit=limit):
            head = catalog.ref(entry.id, HEAD)
            items.append(
                DatasetItem(
                    alias=str(entry.alias),
                    id=entry.id,
                    kind=entry.kind.value,
                    head=head,
                    newest_block=None if head is None else self._newest(entry, head),
                    topics=topics.get(str(entry.id), {}),
                )
            )
        return DatasetList(datasets=tuple(items), next=items[-1].alias if len(items) == limit else None)

    def _newest(self, entry: DatasetEntry, head: Multihash) -> AppendedBlock | None:
        try:
            return self.history.newest(entry, head).data
        except OdfError as error:
            # One damaged dataset must not hide the others.
            _log.warning("dataset %s: %s", entry.alias, error)
            return None

    async def readiness(self) -> Readiness:
        """Ask the broker and the catalog."""
        broker, catalog = await asyncio.gather(
            _probe(asyncio.to_thread(self._ask_broker)), _probe(asyncio.to_thread(self._ask_catalog))
        )
        return Readiness(ready=broker == catalog == _OK, broker=broker, catalog=catalog)

    def _ask_broker(self) -> None:
        with translated("the broker"):
            admin_client(self.bootstrap_servers).list_topics(timeout=_PROBE_S - 1)

    def _ask_catalog(self) -> None:
        self.repository.catalog.dataset_page(limit=1)


async def _probe(asked: Awaitable[None]) -> str:
    try:
        async with asyncio.timeout(_PROBE_S):
            await asked
    except TimeoutError:
        return f"no answer within {_PROBE_S:g} s"
    except OdfError as error:
        return str(error)
    return _OK


@asynccontextmanager
async def running(settings: GatewaySettings, location: str, catalog: Catalog, servers: str) -> AsyncIterator[Gateway]:
    """A gateway with its producer and its consumer, which need no broker to begin with."""
    publisher = Publisher.connect(
        servers, timeout_s=settings.publish_timeout_s, queue_size=settings.max_publishing_size
    )
    gateway = Gateway.of(settings, Repository.at(location, catalog), publisher, bootstrap_servers=servers)
    consumer = BlockConsumer(servers, gateway.feed, asyncio.get_running_loop())
    consumer.start()
    try:
        yield gateway
    finally:
        gateway.feed.close()
        await asyncio.to_thread(consumer.close)
        await asyncio.to_thread(publisher.close)
