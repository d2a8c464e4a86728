"""Publishing a payload: from the request to positions, and to a receipt where one is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from odf_common.crash_points import crash_point
from odf_common.identity.references import parse_ref
from odf_common.messages.payload import MAX_INLINE_SIZE
from odf_common.uploads import Upload
from services.gateway import answers, metrics
from services.gateway.body import Body
from services.gateway.budget import Budget, Share
from services.gateway.duplicates import first_taken
from services.gateway.errors import EmptyBodyError, NotReadyError, RequestError, TooBusyError
from services.gateway.event_ids import UPLOAD_SOURCE, EventId, event_id_of
from services.gateway.feed import BlockFeed, FeedClosedError, LaggedError
from services.gateway.formats import Format, event_time_ms, format_of
from services.gateway.lookup import SourceLookup, Sources, Target, choose
from services.gateway.messages import PositionRange, Published, Uploaded
from services.gateway.outgoing import Payload, inline, uploaded
from services.gateway.publisher import Publisher
from services.gateway.receipts import Receipt, SkippedError, committed
from services.gateway.replay import History
from services.gateway.settings import GatewaySettings
from services.gateway.uploads import MEMORY_SIZE, Uploads


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRequest:
    """A payload for a dataset."""

    dataset: str
    headers: Mapping[str, str]
    """Names in lower case."""
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest(UploadRequest):
    """A payload and what was said about it."""

    source_name: str | None
    upload_token: str | None = None
    """Names the payload where it was uploaded before."""
    wait_s: float | None
    """How long to wait for the commit; None to answer as soon as the payload is in its topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What is to be done with a payload."""

    target: Target
    format: Format
    timestamp_ms: int | None
    event_id: EventId | None


@dataclass(frozen=True, slots=True)
class _Written:
    """A payload that is in its topic."""

    answer: Published
    upload: Upload | None
    """The file that was made for it; none that was there before."""


@dataclass(slots=True)
class Ingest:
    """Takes payloads."""

    settings: GatewaySettings
    lookup: SourceLookup
    publisher: Publisher
    uploads: Uploads
    feed: BlockFeed
    history: History
    budget: Budget
    _waiting: int = field(default=0)

    async def publish(self, request: IngestRequest) -> Published:
        """Publish a payload; the answer has blocks if they were waited for and came in time."""
        target = choose(await self._sources(request), request.source_name)
        headers = request.headers
        order = _Order(
            target=target,
            format=format_of(target.source.read, headers),
            timestamp_ms=event_time_ms(headers.get("odf-event-time")),
            event_id=event_id_of(headers),
        )
        if not target.is_enabled:
            note = "published; the source is switched off, what it holds is committed when it is switched on"
            return (await self._write(request, order)).answer.model_copy(update={"note": note})
        if request.wait_s is None:
            return (await self._write(request, order)).answer
        return await self._write_and_wait(request, order, request.wait_s)

    async def upload(self, request: UploadRequest) -> Uploaded:
        """Keep a payload that is published later."""
        dataset_id = (await self._sources(request)).entry.id
        with self.budget.payload() as share:
            share.grow(MEMORY_SIZE)
            upload = await self.uploads.store(dataset_id, [], self._body(request))
            if not upload.size:
                await self.uploads.remove(dataset_id, upload)
                raise EmptyBodyError("the payload is empty: nothing was kept")
        return answers.uploaded(upload)

    async def _sources(self, request: UploadRequest) -> Sources:
        ref = parse_ref(request.dataset)
        remembered = self.lookup.remembered(ref)
        return remembered if remembered is not None else await asyncio.to_thread(self.lookup.find, ref)

    def _body(self, request: UploadRequest) -> Body:
        return Body(
            request.chunks,
            length=request.headers.get("content-length"),
            max_size=self.uploads.max_size,
            timeout_s=self.settings.body_timeout_s,
        )

    async def _write(self, request: IngestRequest, order: _Order) -> _Written:
        target = order.target
        with self.budget.payload() as share:
            payload = await self._payload(request, order, share)
            own_upload = None if request.upload_token is not None else payload.upload
            crash_point("gateway.before-produce")
            try:
                positions = await self._produce(payload, order)
            except (RequestError, NotReadyError, TooBusyError):
                # The broker has nothing of it. After other errors it may have the message, which needs the upload.
                if own_upload is not None:
                    await self.uploads.remove(target.entry.id, own_upload)
                raise
            crash_point("gateway.after-produce")
        metrics.PUBLISHED_MESSAGES.inc(len(payload.messages))
        metrics.PUBLISHED_RECORDS.inc(payload.records or 0)
        metrics.PUBLISHED_BYTES.inc(payload.size)
        return _Written(answers.published(target, payload, positions), own_upload)

    async def _produce(self, payload: Payload, order: _Order) -> list[PositionRange]:
        return await self.publisher.publish(order.target.topic, payload.messages, timestamp_ms=order.timestamp_ms)

    async def _payload(self, request: IngestRequest, order: _Order, share: Share) -> Payload:
        """All of the payload is here before anything of it is written: it may turn out to be wrong."""
        dataset_id = order.target.entry.id
        body = self._body(request)
        if request.upload_token is not None:
            upload = await self.uploads.find(dataset_id, request.upload_token)
            if await body.next():
                raise RequestError("uploadToken names the payload: send no other one in the body")
            return uploaded(upload, order.format, order.event_id or EventId(upload.name, UPLOAD_SOURCE))
        parts = await body.beginning(MAX_INLINE_SIZE, share)
        if body.ended:
            return await inline(parts, order.format, order.target.source.merge, order.event_id)
        share.grow(MEMORY_SIZE)
        return uploaded(await self.uploads.store(dataset_id, parts, body), order.format, order.event_id)

    async def _write_and_wait(self, request: IngestRequest, order: _Order, wait_s: float) -> Published:
        if self._waiting >= self.settings.max_waiting:
            raise TooBusyError(f"{self._waiting} requests wait for a commit already: nothing was published")
        target = order.target
        self._waiting += 1
        try:
            # From before the payload is written: its block may be announced before the broker's answer is here.
            max_pending = self.settings.max_pending_events
            with self.feed.subscribed((target.entry.id,), max_pending=max_pending) as subscription:
                written = await self._write(request, order)
                receipt = Receipt()
                note = None
                try:
                    async with asyncio.timeout(wait_s):
                        positions = written.answer.positions
                        await committed(subscription, target.source.source_name, target.topic, positions, receipt)
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
        if receipt.dropped and written.upload is not None:
            await self.uploads.remove(target.entry.id, written.upload)  # the first one has a file of its own
        return await self._with_receipt(written.answer, target, receipt, note)

    async def _with_receipt(
        self, published: Published, target: Target, receipt: Receipt, note: str | None
    ) -> Published:
        firsts = await first_taken(self.history, target.entry, receipt.dropped) if receipt.dropped else None
        blocks = tuple(map(answers.committed_block, receipt.blocks))
        update = {"blocks": blocks if note is None or blocks else None, "duplicate_of": firsts, "note": note}
        return published.model_copy(update=update)
