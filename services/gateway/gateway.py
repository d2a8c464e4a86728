"""Everything that one running gateway holds, opened and closed together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import get_args

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.records import DatasetEntry
from odf_common.errors import OdfError
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import DatasetAlias
from odf_common.messages.block_appended import AppendedBlock, BlockAppended
from odf_common.repository.repository import Repository
from odf_common.settings import Settings
from odf_common.storage.layout import HEAD
from services.gateway.budget import Budget
from services.gateway.feed import BlockConsumer, BlockFeed
from services.gateway.ingest import Ingest
from services.gateway.lookup import SOURCE_EVENTS, SourceLookup
from services.gateway.messages import DatasetItem, DatasetList, Readiness
from services.gateway.probes import OK, BrokerQuestion, Probe
from services.gateway.publisher import Publisher
from services.gateway.replay import History
from services.gateway.settings import GatewaySettings
from services.gateway.streams import EventStream
from services.gateway.uploads import Uploads

_log = logging.getLogger(__name__)

_LISTENING_S = 5.0
_SOURCE_EVENTS = frozenset({"Seed", *(event.__name__ for event in get_args(SOURCE_EVENTS))})


@dataclass(slots=True, kw_only=True)
class Gateway:
    """The parts of a gateway."""

    settings: GatewaySettings
    repository: Repository
    lookup: SourceLookup
    feed: BlockFeed
    history: History
    ingest: Ingest
    broker_probe: Probe
    catalog_probe: Probe
    is_listening: Callable[[], bool] = lambda: True
    streams: int = 0
    _replays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))

    @classmethod
    def of(
        cls,
        settings: GatewaySettings,
        repository: Repository,
        publisher: Publisher,
        uploads: Uploads,
        *,
        bootstrap_servers: str,
    ) -> Gateway:
        """A gateway on a repository, a cluster and an upload area."""
        lookup = SourceLookup(repository, keep_s=settings.cache_s)

        def note(event: BlockAppended) -> None:
            if event.data.event_kind in _SOURCE_EVENTS:
                lookup.forget(event.data.dataset_id)

        feed = BlockFeed(note)
        history = History(repository)
        return cls(
            settings=settings,
            repository=repository,
            lookup=lookup,
            feed=feed,
            history=history,
            ingest=Ingest(
                settings=settings,
                lookup=lookup,
                publisher=publisher,
                uploads=uploads,
                feed=feed,
                history=history,
                budget=Budget(settings.max_publishing, settings.max_publishing_size),
            ),
            broker_probe=Probe(BrokerQuestion(bootstrap_servers)),
            catalog_probe=Probe(lambda: _ask_catalog(repository)),
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
        """Ask the broker and the catalog, or say what they answered a moment ago."""
        broker, catalog = await asyncio.gather(self.broker_probe.answer(), self.catalog_probe.answer())
        blocks = OK if self.is_listening() else "nobody listens for new blocks: restart the gateway"
        return Readiness(ready=broker == catalog == blocks == OK, broker=broker, catalog=catalog, blocks=blocks)


def _ask_catalog(repository: Repository) -> None:
    repository.catalog.dataset_page(limit=1)


@asynccontextmanager
async def running(
    gateway_settings: GatewaySettings, settings: Settings, catalog: Catalog, servers: str
) -> AsyncIterator[Gateway]:
    """A gateway with its producer and its consumer, which need no broker to begin with."""
    publisher = Publisher.connect(
        servers, timeout_s=gateway_settings.publish_timeout_s, queue_size=gateway_settings.max_publishing_size
    )
    uploads = Uploads(settings.uploads_folder, settings.max_upload_size, gateway_settings.max_uploads_size)
    repository = Repository.at(settings.repository_location, catalog)
    gateway = Gateway.of(gateway_settings, repository, publisher, uploads, bootstrap_servers=servers)
    consumer = BlockConsumer(servers, gateway.feed, asyncio.get_running_loop())
    gateway.is_listening = consumer.is_alive
    consumer.start()
    try:
        # Whoever hears that the gateway serves may publish and wait for the block. Without a broker there is none.
        await asyncio.to_thread(consumer.wait_until_placed, _LISTENING_S)
        yield gateway
    finally:
        gateway.feed.close()
        await asyncio.to_thread(consumer.close)
        await asyncio.to_thread(publisher.close)
        await asyncio.to_thread(uploads.close)
