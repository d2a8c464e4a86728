"""New blocks as they are announced, for everyone who waits in this process."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odf_common.errors import MalformedBytesError
from odf_common.identity.did import DatasetId
from odf_common.kafka import clients
from odf_common.kafka.topics import BLOCKS
from odf_common.messages.block_appended import BlockAppended
from services.gateway import metrics

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_log = logging.getLogger(__name__)

_POLL_S = 0.5
_BATCH = 1_000


class FeedClosedError(Exception):
    """The gateway stops."""


class LaggedError(Exception):
    """The subscriber took too long: blocks that it had not taken yet were dropped."""


class Subscription:
    """The blocks of some datasets, or of all, from a moment on. Waits in a queue of bounded length."""

    def __init__(self, dataset_ids: Collection[DatasetId] | None, max_pending: int) -> None:
        self.dataset_ids = None if dataset_ids is None else frozenset(dataset_ids)
        self._max_pending = max_pending
        self._pending: deque[BlockAppended] = deque()
        self._end: Exception | None = None
        self._changed = asyncio.Event()

    def offer(self, event: BlockAppended) -> None:
        """Add a block; the subscription ends when there are too many."""
        if self._end is not None:
            return
        if len(self._pending) >= self._max_pending:
            self._pending.clear()
            self.end(LaggedError())
            return
        self._pending.append(event)
        self._changed.set()

    def end(self, reason: Exception) -> None:
        """Raise this where the subscriber waits, once it has taken what is pending."""
        self._end = self._end or reason
        self._changed.set()

    async def next(self) -> BlockAppended:
        """The next block; LaggedError or FeedClosedError when there will be none."""
        while not self._pending:
            if self._end is not None:
                raise self._end
            self._changed.clear()
            await self._changed.wait()
        return self._pending.popleft()


class BlockFeed:
    """Hands blocks on to subscriptions. Everything here runs in the event loop."""

    def __init__(self, on_block: Callable[[BlockAppended], None] = lambda event: None) -> None:
        self._on_block = on_block
        self._subscriptions: set[Subscription] = set()
        self._closed = False

    @contextmanager
    def subscribed(
        self, dataset_ids: Collection[DatasetId] | None = None, *, max_pending: int = 10_000
    ) -> Iterator[Subscription]:
        """A subscription to some datasets, or to all, for the time of the block."""
        subscription = Subscription(dataset_ids, max_pending)
        if self._closed:
            subscription.end(FeedClosedError())
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def deliver(self, events: Iterable[BlockAppended]) -> None:
        """Hand announced blocks on."""
        for event in events:
            self._on_block(event)
            for subscription in list(self._subscriptions):
                if subscription.dataset_ids is None or event.data.dataset_id in subscription.dataset_ids:
                    subscription.offer(event)

    def close(self) -> None:
        """Let everyone who waits go home."""
        self._closed = True
        for subscription in list(self._subscriptions):
            subscription.end(FeedClosedError())


class BlockConsumer:
    """A thread that reads the topic of new blocks from its end on, for as long as the gateway lives.

    It belongs to no group: every gateway sees every block. Where the broker goes away, it goes on from the same place
    afterwards.
    """

    def __init__(self, bootstrap_servers: str, feed: BlockFeed, loop: asyncio.AbstractEventLoop) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._feed = feed
        self._loop = loop
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="blocks", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._stopping.set()
        self._thread.join(4 * _POLL_S)

    def _run(self) -> None:
        from confluent_kafka import OFFSET_END, TopicPartition

        consumer = clients.consumer(
            self._bootstrap_servers,
            # Required by the client, used by nobody.
            group="odf.gateway",
            # A topic that was made anew is read whole: subscribers know blocks that they have seen by their numbers.
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            reconnect_backoff_max_ms=500,
        )
        consumer.assign([TopicPartition(BLOCKS, 0, OFFSET_END)])
        try:
            while not self._stopping.is_set():
                events = read_events(consumer)
                if events:
                    self._loop.call_soon_threadsafe(self._feed.deliver, events)
        except RuntimeError:
            # The loop was closed while we were reading.
            if not self._stopping.is_set():
                raise
        finally:
            consumer.close()


def read_events(consumer: Consumer) -> list[BlockAppended]:
    """What has come: waits for the first and takes the others that are there."""
    first = consumer.poll(_POLL_S)
    if first is None:
        return []
    events: list[BlockAppended] = []
    for message in (first, *consumer.consume(_BATCH, timeout=0)):
        error = message.error()
        if error is not None:
            _log.warning("topic %s: %s", BLOCKS, error.str())
            continue
        metrics.NOTIFICATIONS.inc()
        try:
            events.append(BlockAppended.from_json(message.value() or b""))
        except MalformedBytesError as error:
            metrics.BAD_NOTIFICATIONS.inc()
            _log.warning("topic %s, position %s: %s", BLOCKS, message.offset(), error)
    return events
