"""Publishing a payload: from the request to positions, and to a receipt where one is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from odf_common.crash_points import crash_point
from odf_common.identity.references import parse_ref
from odf_common.ingest.cutting import Piece
from services.gateway import metrics
from services.gateway.errors import TooBusyError
from services.gateway.feed import BlockFeed, FeedClosedError, LaggedError
from services.gateway.lookup import SourceLookup, Target, choose
from services.gateway.messages import CommittedBlock, PositionRange, Published
from services.gateway.payloads import Budget, check_media_type, event_time_ms, messages_of, read_body
from services.gateway.publisher import Publisher
from services.gateway.receipts import SkippedError, committed
from services.gateway.settings import GatewaySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """A payload and what was said about it."""

    dataset: str
    source_name: str | None
    headers: Mapping[str, str]
    """Names in lower case."""
    chunks: AsyncIterator[bytes]
    wait_s: float | None
    """How long to wait for the commit; None to answer as soon as the payload is in its topic."""


@dataclass(slots=True)
class Ingest:
    """Takes payloads."""

    settings: GatewaySettings
    lookup: SourceLookup
    publisher: Publisher
    feed: BlockFeed
    budget: Budget
    _waiting: int = field(default=0)

    async def publish(self, request: IngestRequest) -> Published:
        """Publish a payload; the answer has blocks if they were waited for and came in time."""
        target = await self._target(request)
        headers = request.headers
        check_media_type(target.source.read, headers.get("content-type"), headers.get("content-encoding"))
        timestamp_ms = event_time_ms(headers.get("odf-event-time"))
        if request.wait_s is None:
            return await self._write(request, target, timestamp_ms)
        return await self._write_and_wait(request, target, timestamp_ms, request.wait_s)

    async def _target(self, request: IngestRequest) -> Target:
        ref = parse_ref(request.dataset)
        sources = self.lookup.remembered(ref)
        if sources is None:
            sources = await asyncio.to_thread(self.lookup.find, ref)
        return choose(sources, request.source_name)

    async def _write(self, request: IngestRequest, target: Target, timestamp_ms: int | None) -> Published:
        settings = self.settings
        with self.budget.payload() as share:
            parts = await read_body(
                request.chunks,
                share,
                length=request.headers.get("content-length"),
                max_size=settings.max_body_size,
                timeout_s=settings.body_timeout_s,
            )
            pieces = await messages_of(target.source.read, parts)
            parts.clear()
            crash_point("gateway.before-produce")
            positions = await self.publisher.publish(target.topic, pieces, timestamp_ms=timestamp_ms)
            crash_point("gateway.after-produce")
        _count(pieces)
        return _answer(target, pieces, positions)

    async def _write_and_wait(
        self, request: IngestRequest, target: Target, timestamp_ms: int | None, wait_s: float
    ) -> Published:
        if self._waiting >= self.settings.max_waiting:
            raise TooBusyError(f"{self._waiting} requests wait for a commit already: nothing was published")
        self._waiting += 1
        try:
            # From before the payload is written: its block may be announced before the broker's answer is here.
            max_pending = self.settings.max_pending_events
            with self.feed.subscribed((target.entry.id,), max_pending=max_pending) as subscription:
                published = await self._write(request, target, timestamp_ms)
                blocks: list[CommittedBlock] = []
                note = None
                try:
                    async with asyncio.timeout(wait_s):
                        positions = published.positions
                        await committed(subscription, target.source.source_name, target.topic, positions, blocks)
                except TimeoutError:
                    note = f"published, but not committed within {wait_s:g} s"
                except SkippedError as skipped:
                    note = f"published, but skipped: a gap was accepted in the source ({skipped})"
                except LaggedError:
                    note = "published; more blocks came than could be followed, so there is no receipt"
                except FeedClosedError:
                    note = "published; the gateway stops and did not wait for the commit"
        finally:
            self._waiting -= 1
        return published.model_copy(update={"blocks": tuple(blocks) if note is None or blocks else None, "note": note})


def _count(pieces: list[Piece]) -> None:
    metrics.PUBLISHED_MESSAGES.inc(len(pieces))
    metrics.PUBLISHED_RECORDS.inc(sum(piece.records for piece in pieces))
    metrics.PUBLISHED_BYTES.inc(sum(len(piece.data) for piece in pieces))


def _answer(target: Target, pieces: list[Piece], positions: list[PositionRange]) -> Published:
    return Published(
        dataset=str(target.entry.alias),
        dataset_id=target.entry.id,
        source=target.source.source_name,
        topic=target.topic,
        positions=tuple(positions),
        messages=len(pieces),
        records=sum(piece.records for piece in pieces),
    )
