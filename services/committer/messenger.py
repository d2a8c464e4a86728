"""Notifications and rejections to their topics, each safe with the broker before anything goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odf_common.errors import StoreUnavailableError
from odf_common.kafka.clients import producer
from odf_common.kafka.topics import BLOCKS, REJECTIONS
from odf_common.messages.block_appended import CLOUD_EVENTS_JSON, BlockAppended
from odf_common.messages.completion import Rejection

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

_log = logging.getLogger("committer.messenger")

_HEADERS: list[tuple[str, str | bytes | None]] = [("content-type", CLOUD_EVENTS_JSON.encode())]
_JSON_HEADERS: list[tuple[str, str | bytes | None]] = [("content-type", b"application/json")]
_FLUSH_S = 0.5


class StoppedError(Exception):
    """The process was told to stop while it waited; what was not done is done by the next one."""


class Messenger:
    """An idempotent producer that keeps trying: in the order of the calls, and each message once."""

    def __init__(self, bootstrap_servers: str, *, stopping: Callable[[], bool]) -> None:
        self._producer: Producer = producer(bootstrap_servers, message_timeout_ms=0)
        self._stopping = stopping
        self._failure: KafkaError | None = None

    def tell(self, event: BlockAppended) -> None:
        """Send a notification, without waiting for it."""
        self._send(BLOCKS, str(event.data.dataset_id), event.to_json(), _HEADERS)

    def reject(self, answer: Rejection) -> None:
        """Send a rejection, without waiting for it."""
        self._send(REJECTIONS, str(answer.dataset_id), answer.to_json(), _JSON_HEADERS)

    def wait(self) -> None:
        """Return when all is safe with the broker, however long that takes.

        StoreUnavailableError if it never will be; StoppedError if the process is to stop first.
        """
        while self._producer.flush(_FLUSH_S):
            if self._stopping():
                raise StoppedError
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise StoreUnavailableError(f"a notification was not delivered: Kafka says {failure.str()}")

    def _send(self, topic: str, key: str, value: bytes, headers: list[tuple[str, str | bytes | None]]) -> None:
        from confluent_kafka import KafkaError, KafkaException

        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(_FLUSH_S)
                if self._stopping():
                    raise StoppedError from None
            except KafkaException as error:
                if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                    raise StoreUnavailableError(f"topic {topic}: Kafka says {error.args[0].str()}") from error
                _log.error("a message of %d bytes to %s is too large and was left out", len(value), topic)
                return
            else:
                return

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self._failure = error
