"""The events that everybody reads, the same in each run."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from odf_common.kafka.clients import admin_client, producer
from odf_common.kafka.topics import Topic, create_topics

EVENTS = 1_000_000
PARTITIONS = 4
COLUMNS = ("event_time TIMESTAMP", "id BIGINT", "device STRING", "value DOUBLE", "ok BOOLEAN")

_RUN = 500  # events in a row that go to the same partition, as a publisher's batches do


def event(number: int) -> bytes:
    """About 100 bytes; one event a millisecond."""
    seconds, milliseconds = divmod(number, 1000)
    time = f"2024-01-01T{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milliseconds:03}Z"
    value = (number * 7919 % 1_000_003) / 1000
    ok = "false" if number % 97 == 0 else "true"
    return (
        f'{{"event_time":"{time}","id":{number},"device":"device-{number * 31 % 10_000:05}","value":{value},"ok":{ok}}}'
    ).encode()


@cache
def all_events() -> tuple[bytes, ...]:
    """All of them."""
    return tuple(map(event, range(EVENTS)))


def write_file(path: Path) -> Path:
    """All events as NDJSON."""
    path.write_bytes(b"\n".join(all_events()) + b"\n")
    return path


def fill_topic(
    servers: str, topic: str, *, count: int = EVENTS, partitions: int = PARTITIONS, spread: int = _RUN
) -> None:
    """Publish `count` events, one in a message, from the first one again after the last.

    `spread` events in a row go to one partition, the next to the next one.
    """
    create_topics(admin_client(servers), [Topic(name=topic, partitions=partitions)])
    sender = producer(servers, linger_ms=20, batch_size=1 << 20, queue_buffering_max_messages=1_000_000)
    values = all_events()
    for number in range(count):
        while True:
            try:
                sender.produce(topic, values[number % EVENTS], partition=number // spread % partitions)
                break
            except BufferError:
                sender.poll(0.05)
        if number % 10_000 == 0:
            sender.poll(0)
    if left := sender.flush(120):
        raise SystemExit(f"{left} events were not published to {topic}")
