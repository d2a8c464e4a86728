"""The publisher of the demo: one thread that sends events at a chosen rate, one event per message."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from odf_common.errors import StoreUnavailableError
from odf_common.kafka.clients import producer

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from services.demo.tally import Tally

_STEP_S = 0.005
_FLUSH_TIMEOUT_S = 30.0


class Publisher(threading.Thread):
    """Sends (which topic, event) in the order given, all to partition 0, so that the topic keeps the order.

    `rate` is in events per second, 0 for as fast as the broker takes them.
    """

    def __init__(
        self,
        servers: str,
        topics: Sequence[str],
        tallies: Sequence[Tally],
        events: Iterator[tuple[int, bytes]],
        *,
        rate: float,
    ) -> None:
        super().__init__(name="demo publisher", daemon=True)
        self.error: Exception | None = None
        self._topics = topics
        self._tallies = tallies
        self._events = events
        self._rate = rate
        self._stopping = threading.Event()
        self._confirmations = [_confirmation(tally, self._failed) for tally in tallies]
        self._producer = producer(servers, compression_type="lz4", linger_ms=2)

    def run(self) -> None:
        """Send until the events end or `stop` is called, and wait until the broker has them."""
        try:
            self._send_all()
            if left := self._producer.flush(_FLUSH_TIMEOUT_S):
                raise StoreUnavailableError(f"Kafka did not confirm {left} events within {_FLUSH_TIMEOUT_S:.0f} s")
        except Exception as error:
            self.error = self.error or error

    def stop(self) -> None:
        """Send no more; what was handed over is still confirmed."""
        self._stopping.set()
        self.join()

    def _send_all(self) -> None:
        began = time.monotonic()
        for number, (which, value) in enumerate(self._events):
            if self._rate:
                self._wait_until(began + number / self._rate)
            if self._stopping.is_set() or self.error:
                return
            self._send(which, value)

    def _wait_until(self, due: float) -> None:
        """Sleep in steps of some milliseconds: the events of one step go together."""
        if due - time.monotonic() < _STEP_S:
            return
        self._producer.poll(0)
        self._stopping.wait(due - time.monotonic())

    def _send(self, which: int, value: bytes) -> None:
        self._tallies[which].hand_over(time.monotonic())
        while not self._stopping.is_set():
            try:
                self._producer.produce(self._topics[which], value, partition=0, on_delivery=self._confirmations[which])
            except BufferError:
                self._producer.poll(0.1)  # the queue is full: wait until the broker took some of it
            else:
                break
        self._producer.poll(0)

    def _failed(self, error: KafkaError) -> None:
        self.error = StoreUnavailableError(f"publishing: Kafka says {error.str()}")


def _confirmation(tally: Tally, failed: Callable[[KafkaError], None]) -> Callable[[KafkaError | None, Message], None]:
    def confirmed(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed(error)
            return
        position = message.offset()
        assert position is not None, "a delivered message has an offset"
        tally.confirm(position)

    return confirmed
