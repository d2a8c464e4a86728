"""Messages to Kafka, without blocking the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from odf_common.kafka import clients
from services.gateway.errors import BrokerUnavailableError, NotReadyError, RequestError, TooBusyError
from services.gateway.messages import PositionRange
from services.gateway.outgoing import KafkaHeaders, Outgoing

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_log = logging.getLogger(__name__)

_POLL_S = 0.5
_NOW = 0
_FAREWELL_S = 10.0
_MAX_QUEUED_MESSAGES = 100_000
_MAYBE_WRITTEN = "the payload may nevertheless have been written"


OnDelivery = Callable[["KafkaError | None", "Message"], None]


class KafkaProducer(Protocol):
    """What is used of confluent-kafka's producer."""

    def produce(
        self, topic: str, value: bytes, *, on_delivery: OnDelivery, timestamp: int = ..., headers: KafkaHeaders = ...
    ) -> None:
        """Queue a message; BufferError if the queue is full. Timestamp 0 is now."""
        ...

    def poll(self, timeout: float) -> int:
        """Run the callbacks of what was delivered."""
        ...

    def flush(self, timeout: float) -> int:
        """Wait for the queue to empty."""
        ...


@dataclass(slots=True)
class _Delivery:
    """The messages of one payload on their way. Filled by the poll thread, read when `done`."""

    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]
    missing: int
    offsets: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    error: KafkaError | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Called by the producer for each message."""
        if error is not None:
            self.error = self.error or error
        else:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.offsets[partition].append(offset)
        self.missing -= 1
        if self.missing == 0:
            self.loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class Publisher:
    """An idempotent producer and the thread that hears of its deliveries."""

    def __init__(self, make_producer: Callable[[], KafkaProducer]) -> None:
        self._make_producer = make_producer
        self._producer = make_producer()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="deliveries", daemon=True)
        self._thread.start()

    @classmethod
    def connect(cls, bootstrap_servers: str, *, timeout_s: float, queue_size: int) -> Publisher:
        """A publisher on a cluster, which need not be there yet."""
        timeout_ms = round(timeout_s * 1000)
        settings = {
            "message_timeout_ms": timeout_ms,
            "request_timeout_ms": timeout_ms,
            "reconnect_backoff_max_ms": 500,
            # A topic that was just created is looked for again, but no longer than the payload may wait.
            "topic_metadata_propagation_max_ms": timeout_ms,
            "queue_buffering_max_messages": _MAX_QUEUED_MESSAGES,
            "queue_buffering_max_kbytes": 2 * (queue_size >> 10) + 1024,
        }
        return cls(lambda: clients.producer(bootstrap_servers, **settings))

    def close(self) -> None:
        """Stop; what is still queued gets a moment to go out."""
        self._producer.flush(2.0)
        self._stopping.set()
        self._thread.join(2 * _POLL_S)

    async def publish(
        self, topic: str, messages: Sequence[Outgoing], *, timestamp_ms: int | None
    ) -> list[PositionRange]:
        """Write messages in their order and return where they are, once the broker has them safely."""
        loop = asyncio.get_running_loop()
        producer = self._producer
        delivery = _Delivery(loop=loop, done=loop.create_future(), missing=len(messages))
        for number, message in enumerate(messages):
            await self._queue(producer, topic, message, delivery, timestamp_ms or _NOW, is_first=number == 0)
        # The producer gives each message up by itself, and says so.
        await delivery.done
        if delivery.error is not None:
            raise self._refusal(delivery.error, topic, producer)
        return ranges_of(delivery.offsets)

    async def _queue(
        self,
        producer: KafkaProducer,
        topic: str,
        message: Outgoing,
        delivery: _Delivery,
        timestamp_ms: int,
        *,
        is_first: bool,
    ) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                producer.produce(
                    topic,
                    message.value,
                    on_delivery=delivery.delivered,
                    timestamp=timestamp_ms,
                    headers=message.headers,
                )
                return
            except BufferError as error:
                if is_first:
                    raise TooBusyError("the queue to the broker is full: nothing was published") from error
                await asyncio.sleep(0.01)
            except KafkaException as error:
                raise self._refusal(error.args[0], topic, producer) from error

    def _refusal(self, error: KafkaError, topic: str, producer: KafkaProducer) -> Exception:
        from confluent_kafka import KafkaError as Kafka

        # All payloads that a broken producer had taken come by here; the first one has it replaced.
        if producer is self._producer and (error.fatal() or error.code() == Kafka._FATAL):
            _log.error("the producer cannot go on, a new one takes its place: %s", error.str())
            self._replace_producer()
        if error.code() == Kafka.INVALID_TIMESTAMP:
            return RequestError(f"the broker refuses the time in odf-event-time: {error.str()}")
        if error.code() in (Kafka._UNKNOWN_TOPIC, Kafka.UNKNOWN_TOPIC_OR_PART):
            return NotReadyError(f"topic {topic} does not exist yet: the ingest job creates it while it runs")
        return BrokerUnavailableError(f"the broker did not confirm the payload ({error.str()}): {_MAYBE_WRITTEN}")

    def _replace_producer(self) -> None:
        broken, self._producer = self._producer, self._make_producer()
        # The other payloads that it had taken hear of their fate, too.
        threading.Thread(target=broken.flush, args=(_FAREWELL_S,), name="last deliveries", daemon=True).start()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(_POLL_S)


def ranges_of(offsets: dict[int, list[int]]) -> list[PositionRange]:
    """Half-open ranges, as few as there can be: other producers may have written in between."""
    ranges: list[PositionRange] = []
    for partition, found in sorted(offsets.items()):
        start = previous = None
        for offset in sorted(found):
            if previous is None or start is None:
                start = offset
            elif offset != previous + 1:
                ranges.append(PositionRange(partition=partition, start=start, next=previous + 1))
                start = offset
            previous = offset
        if start is not None and previous is not None:
            ranges.append(PositionRange(partition=partition, start=start, next=previous + 1))
    return ranges
