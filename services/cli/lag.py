"""How far the chain is behind a topic."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.cli import topic_reading

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_FIRST_MESSAGES_S = 3.0


@dataclass(frozen=True, slots=True)
class Lag:
    """Positions between the chain and the end of the topic, and the age of the first message among them."""

    events: int
    seconds: float


def lag_of(reader: Consumer, topic: str, read_to: Mapping[int, int], *, now: float) -> Lag:
    """How far a topic is ahead of what was read; NotFoundError if it does not exist. `now`: seconds of the epoch."""
    behind = unread(topic_reading.bounds(reader, topic), read_to)
    events = sum(end - start for start, end in behind.values())
    if not behind:
        return Lag(0, 0.0)
    oldest = _oldest_time(reader, topic, {partition: start for partition, (start, _) in behind.items()})
    return Lag(events, 0.0 if oldest is None else max(now - oldest, 0.0))


def unread(bounds: Mapping[int, tuple[int, int]], read_to: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """The half-open ranges of positions that were not read, of the partitions that have one."""
    ranges = {each: (max(read_to.get(each, 0), first), end) for each, (first, end) in bounds.items()}
    return {partition: (start, end) for partition, (start, end) in ranges.items() if start < end}


def _oldest_time(reader: Consumer, topic: str, start: Mapping[int, int]) -> float | None:
    """The least timestamp of the messages at these positions; None where only markers of transactions are left."""
    from confluent_kafka import KafkaError

    topic_reading.assign(reader, topic, start)
    times: dict[int, float] = {}
    done: set[int] = set()
    deadline = time.monotonic() + _FIRST_MESSAGES_S
    while done != start.keys() and time.monotonic() < deadline:
        for message in reader.consume(1, timeout=0.2):
            partition = message.partition()
            assert partition is not None, "a consumed message has a partition"
            error = message.error()
            if error is None:
                times[partition] = min(times.get(partition, float("inf")), message.timestamp()[1] / 1000)
                done.add(partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                done.add(partition)
    reader.unassign()
    return min(times.values(), default=None)


def rows_per_second(
    blocks: Iterable[tuple[float, int]], *, now: float, window_s: float = 60.0, max_blocks: int = 2_000
) -> float:
    """The rate of rows over the window, from blocks newest first as (time, rows).

    Where the window holds more blocks than are worth reading, over the time that those take.
    """
    rows = 0
    for number, (moment, count) in enumerate(blocks, 1):
        if moment < now - window_s:
            break
        rows += count
        if number == max_blocks:
            return rows / max(now - moment, 1e-3)
    return rows / window_s
