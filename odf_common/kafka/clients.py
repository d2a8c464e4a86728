"""Producers, consumers and admin clients with the settings that the guarantees need."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from odf_common.errors import StoreUnavailableError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, Producer
    from confluent_kafka.admin import AdminClient

_log = logging.getLogger("kafka")

_MAX_FETCH_SIZE = 32 << 20  # bytes; twice what one message may have


def producer(bootstrap_servers: str, **settings: Any) -> Producer:
    """An idempotent producer: what it reports as delivered is on the broker once, in the order of the calls."""
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 0,
            "message.max.bytes": 17 << 20,
            "logger": _log,
            **dotted(settings),
        }
    )


def consumer(bootstrap_servers: str, *, group: str, **settings: Any) -> Consumer:
    """A consumer that sees committed messages only and whose group positions move when it says so."""
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            "fetch.max.bytes": _MAX_FETCH_SIZE,
            "receive.message.max.bytes": _MAX_FETCH_SIZE + 1024,
            "logger": _log,
            **dotted(settings),
        }
    )


def admin_client(bootstrap_servers: str) -> AdminClient:
    """A client for topics."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap_servers}, logger=_log)


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    """The headers of a message; none where a name is not UTF-8: the client then shows none, and fails like this."""
    try:
        return cast("list[tuple[str, bytes | None]]", message.headers() or [])
    except SystemError:
        return []


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`linger_ms=5` as Kafka writes it: `linger.ms`."""
    return {name.replace("_", "."): value for name, value in settings.items()}


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn a Kafka error into a StoreUnavailableError that says what was asked for."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise StoreUnavailableError(f"{what}: Kafka says {error.args[0].str()}") from error
