"""What the job sends: completions to the committer, and records that could not be read to the dead letters."""

from __future__ import annotations

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
        self._failure: str | None = None

    def propose(self, completion: Completion) -> None:
        """Ask for a commit. Returns at once; a failure is raised by a later call, when the batch is built again."""
        self._check()
        self._producer.produce(
            COMPLETIONS, completion.to_json(), key=str(completion.dataset_id), on_delivery=self._delivered
        )
        self._producer.poll(0)

    def bury(self, dataset_id: DatasetId, source: Source, records: Iterable[Unreadable], found: Timestamp) -> None:
        """Put records into the dead letters and wait until the broker has them."""
        self._check()
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
        self._check()

    def close(self) -> None:
        """Send what waits, for a while."""
        self._producer.flush(_FLUSH_TIMEOUT_S / 10)

    def _enqueue(self, data: bytes, key: str, note: DeadLetterNote) -> None:
        while True:
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

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = f"topic {message.topic()}: {error.str()}"
            _log.error("not delivered", topic=message.topic(), error=error.str())

    def _check(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise StoreUnavailableError(f"a message was not delivered: {failure}")
