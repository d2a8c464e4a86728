"""New blocks as they are announced, for everyone who waits in this process."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
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
    from confluent_kafka import Consumer, KafkaError

_log = logging.getLogger(__name__)

_POLL_S = 0.5
_BATCH = 1_000
_PAUSE_S = 1.0
_QUERY_S = 1.0


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
    afterwards; so it does after a failure that nobody thought of.
    """

    def __init__(self, bootstrap_servers: str, feed: BlockFeed, loop: asyncio.AbstractEventLoop) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._feed = feed
        self._loop = loop
        self._stopping = threading.Event()
        self._placed = threading.Event()
        self._started_ms = 0
        self._next: int | None = None
        self._thread = threading.Thread(target=self._run, name="blocks", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._started_ms = time.time_ns() // 1_000_000
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def wait_until_placed(self, timeout_s: float) -> bool:
        """Wait until it is known where reading begins: no block that is announced later is missed."""
        return self._placed.wait(timeout_s)

    def close(self) -> None:
        """Stop."""
        self._stopping.set()
        self._placed.set()
        self._thread.join(4 * _POLL_S)

    def _run(self) -> None:
        while self._goes_on():
            try:
                self._listen()
            except Exception:
                # Without this thread nobody would hear of a block any more, so it outlives whatever happens in it.
                if self._goes_on():
                    _log.exception("listening for new blocks failed, it begins anew")
                    self._stopping.wait(_PAUSE_S)

    def _goes_on(self) -> bool:
        return not self._stopping.is_set() and not self._loop.is_closed()

    def _listen(self) -> None:
        from confluent_kafka import TopicPartition

        consumer = self._opened()
        try:
            if self._next is None:
                self._next = self._first_position(consumer)
            self._placed.set()
            if self._next is None:
                return
            consumer.assign([TopicPartition(BLOCKS, 0, self._next)])
            while self._goes_on():
                self._hand_on(consumer)
        finally:
            consumer.close()

    def _hand_on(self, consumer: Consumer) -> None:
        from confluent_kafka import TopicPartition

        try:
            events = read_events(consumer)
        finally:
            # Also behind what could not be handed on: it would fail again.
            (place,) = consumer.position([TopicPartition(BLOCKS, 0)])
            if place.offset >= 0:
                self._next = place.offset
        if events:
            self._loop.call_soon_threadsafe(self._feed.deliver, events)

    def _opened(self) -> Consumer:
        return clients.consumer(
            self._bootstrap_servers,
            # Required by the client, used by nobody.
            group="odf.gateway",
            # A topic that was made anew is read whole: subscribers know blocks that they have seen by their numbers.
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            reconnect_backoff_max_ms=500,
        )

    def _first_position(self, consumer: Consumer) -> int | None:
        """The topic's end, as soon as the broker tells; None if told to stop before."""
        from confluent_kafka import KafkaException

        while self._goes_on():
            try:
                return first_position(consumer, since_ms=self._started_ms)
            except KafkaException as error:
                if is_unknown_topic(error.args[0]):
                    return 0  # whatever comes is new
                _log.info("waiting for the end of topic %s: %s", BLOCKS, error.args[0].str())
                self._stopping.wait(_POLL_S)
        return None


def first_position(consumer: Consumer, *, since_ms: int) -> int:
    """The topic's end, or the first block announced since then if there is one: the broker may have come late."""
    from confluent_kafka import TopicPartition

    _, end = consumer.get_watermark_offsets(TopicPartition(BLOCKS, 0), timeout=_QUERY_S)
    (found,) = consumer.offsets_for_times([TopicPartition(BLOCKS, 0, since_ms)], timeout=_QUERY_S)
    if found.error is not None or found.offset < 0:
        return int(end)
    return min(int(found.offset), int(end))


def is_unknown_topic(error: KafkaError) -> bool:
    """Whether the broker says that the topic does not exist."""
    from confluent_kafka import KafkaError as Kafka

    return error.code() in (Kafka.UNKNOWN_TOPIC_OR_PART, Kafka._UNKNOWN_TOPIC, Kafka._UNKNOWN_PARTITION)


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
