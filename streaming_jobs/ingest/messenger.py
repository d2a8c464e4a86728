"""What the job sends: completions to the committer, and records that could not be read to the dead letters."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import structlog

from odf_common.errors import StoreUnavailableError
from odf_common.kafka.clients import producer
from odf_common.kafka.topics import COMPLETIONS, DEAD_LETTERS
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from odf_common.identity.did import DatasetId
    from odf_common.ingest.messages import Unreadable
    from odf_common.messages.completion import Completion
    from odf_common.timestamp import Timestamp
    from streaming_jobs.ingest.source import Source

_FLUSH_TIMEOUT_S = 60.0

_log = structlog.get_logger(__name__)


class Messenger:
    """Sends in the order of the calls. Safe to share between threads."""

    def __init__(self, bootstrap_servers: str) -> None:
        # Dead letters hold what is larger than any other message of ours.
        self._producer = producer(bootstrap_servers, compression_type="lz4")
        self._failures: dict[str, str] = {}

    def propose(self, completion: Completion) -> None:
        """Ask for a commit. Returns at once; `failure` tells later if the broker did not take it."""
        self._producer.produce(
            COMPLETIONS, completion.to_json(), key=str(completion.dataset_id), on_delivery=self._delivered
        )
        self._producer.poll(0)

    def bury(self, dataset_id: DatasetId, source: Source, records: Iterable[Unreadable], found: Timestamp) -> None:
        """Put records into the dead letters and wait until the broker has them."""
        for record in records:
            note = DeadLetterNote(
                dataset_id=dataset_id,
                source_name=source.name,
                topic=source.binding.topic,
                topic_id=source.topic_id,
                partition=record.partition,
                offset=record.offset,
                index=record.index,
                timestamp=record.timestamp,
                code=record.code,
                reason=record.reason,
                time=found,
            )
            self._enqueue(record.data, str(dataset_id), note)
        if self._producer.flush(_FLUSH_TIMEOUT_S):
            raise StoreUnavailableError("the broker does not take dead letters: they are sent again with their batch")
        if (failure := self.failure(dataset_id)) is not None:
            raise StoreUnavailableError(failure)

    def failure(self, dataset_id: DatasetId) -> str | None:
        """What of a dataset was not delivered since this was asked last; its batches are to be built again."""
        self._producer.poll(0)
        return self._failures.pop(str(dataset_id), None)

    def close(self) -> None:
        """Send what waits, for a while."""
        self._producer.flush(_FLUSH_TIMEOUT_S / 10)

    def _enqueue(self, data: bytes, key: str, note: DeadLetterNote) -> None:
        give_up = time.monotonic() + _FLUSH_TIMEOUT_S
        while time.monotonic() < give_up:
            try:
                self._producer.produce(
                    DEAD_LETTERS,
                    data,
                    key=key,
                    headers={DEAD_LETTER_HEADER: note.to_json()},
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return
        raise StoreUnavailableError("the broker takes dead letters too slowly: they are sent again with their batch")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            key = (message.key() or b"").decode()
            self._failures[key] = f"a message to topic {message.topic()} was not delivered: {error.str()}"
            _log.error("not delivered", topic=message.topic(), dataset=key, error=error.str())
