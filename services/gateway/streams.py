"""Streams of server-sent events: every block of some datasets once and in order, wherever a client comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from odf_common.catalog.records import DatasetEntry
from odf_common.errors import InvalidTextError, OdfError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.messages.block_appended import BlockAppended
from services.gateway import metrics
from services.gateway.feed import BlockFeed, FeedClosedError, LaggedError, Subscription
from services.gateway.replay import History

HEAD = "head"
GENESIS = "genesis"

_PAGE = 100  # blocks read at a time
_MAX_REPLAYS = 4
_MAX_NUMBER_LENGTH = 18

From = int | None
"""The number of the first block; None for what comes behind the head."""


def parse_from(text: str) -> From:
    """`head`, `genesis` or the number of the first block."""
    if text == HEAD:
        return None
    if text == GENESIS:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER_LENGTH:
        return int(text)
    raise InvalidTextError("from", text, position=0, reason="expected head, genesis or a sequence number")


def parse_last_event_id(text: str, datasets: int) -> list[int]:
    """The sequence numbers that a client saw last, in the order of its datasets; -1 where it saw none."""
    parts = text.split(",") if len(text) <= datasets * (_MAX_NUMBER_LENGTH + 1) else []
    if len(parts) != datasets or not all(_is_number(part) for part in parts):
        reason = f"expected {datasets} sequence numbers joined by ',', one for each dataset of the request"
        raise InvalidTextError("Last-Event-ID", text, position=0, reason=reason)
    return [int(part) for part in parts]


def _is_number(text: str) -> bool:
    return text == "-1" or (text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER_LENGTH)


@dataclass(slots=True)
class _Place:
    """How far one dataset was sent."""

    entry: DatasetEntry
    next_number: int


@dataclass(slots=True)
class EventStream:
    """One client's stream."""

    feed: BlockFeed
    history: History
    heartbeat_s: float
    max_pending: int
    replays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_REPLAYS))
    _places: dict[DatasetId, _Place] = field(default_factory=dict)

    async def start(self, entries: Sequence[DatasetEntry], begin: From, last_seen: Sequence[int] | None) -> None:
        """Decide where each dataset begins, before anything is sent."""
        for index, entry in enumerate(entries):
            if last_seen is not None:
                number = last_seen[index] + 1
            elif begin is None:
                number = await asyncio.to_thread(self.history.next_sequence_number, entry)
            else:
                number = begin
            self._places[entry.id] = _Place(entry, number)

    async def texts(self) -> AsyncIterator[str]:
        """The stream, until the client goes, lags too far behind or the gateway stops."""
        yield "retry: 1000\n\n"
        try:
            # Long replays need no subscription: only what comes after them has to be waited for.
            for place in self._places.values():
                async for text in self._replay(place):
                    yield text
            with self.feed.subscribed(self._places or None, max_pending=self.max_pending) as subscription:
                for place in self._places.values():
                    async for text in self._replay(place):
                        yield text
                async for text in self._live(subscription):
                    yield text
        except LaggedError:
            metrics.DROPPED_SUBSCRIBERS.inc()
            yield _problem("Lagged", "this client reads more slowly than blocks are made: come back with Last-Event-ID")
        except FeedClosedError:
            yield _problem("Stopping", "the gateway stops: come back with Last-Event-ID")
        except OdfError as error:
            yield _problem(error.code, str(error))

    async def _live(self, subscription: Subscription) -> AsyncIterator[str]:
        while True:
            try:
                async with asyncio.timeout(self.heartbeat_s):
                    event = await subscription.next()
            except TimeoutError:
                yield ": heartbeat\n\n"
                continue
            if not self._places:
                yield event_text(event, None)
                continue
            place = self._places[event.data.dataset_id]
            number = event.data.sequence_number
            if number > place.next_number:
                async for text in self._replay(place, until=event.data.prev_block_hash):
                    yield text
            if number == place.next_number:
                yield self._sent(place, event)

    async def _replay(self, place: _Place, *, until: Multihash | None = None) -> AsyncIterator[str]:
        """What the chain holds and was not sent yet."""
        async with self.replays:
            ends = await asyncio.to_thread(self.history.stretches_from, place.entry, place.next_number, until=until)
        for end in ends:
            async for text in self._replay_stretch(place, end):
                yield text

    async def _replay_stretch(self, place: _Place, until: Multihash) -> AsyncIterator[str]:
        async with self.replays:
            hashes = await asyncio.to_thread(self.history.hashes_from, place.entry, place.next_number, until=until)
        for start in range(0, len(hashes), _PAGE):
            page = hashes[start : start + _PAGE]
            async with self.replays:
                events = await asyncio.to_thread(self.history.events, place.entry, page)
            for event in events:
                yield self._sent(place, event)

    def _sent(self, place: _Place, event: BlockAppended) -> str:
        place.next_number = event.data.sequence_number + 1
        return event_text(event, ",".join(str(each.next_number - 1) for each in self._places.values()))


def event_text(event: BlockAppended, event_id: str | None) -> str:
    """A CloudEvent as a server-sent event."""
    head = "" if event_id is None else f"id: {event_id}\n"
    return f"{head}data: {event.to_json().decode()}\n\n"


def _problem(code: str, message: str) -> str:
    """A last event of another type; EventSource clients come back by themselves afterwards."""
    text = f"{code}: {message}".replace("\r", " ").replace("\n", " ")
    return f"event: problem\ndata: {text}\n\n"
