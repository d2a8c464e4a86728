"""What the job sends: completions to the committer, and records that could not be read to the dead letters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import structlog

from odf_common.errors import OdfError, StoreUnavailableError
from odf_common.kafka.clients import producer
from odf_common.kafka.topics import COMPLETIONS, DEAD_LETTERS, MAX_MESSAGE_SIZE
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from odf_common.identity.did import DatasetId
    from odf_common.ingest.messages import Unreadable
    from odf_common.messages.completion import Completion
    from odf_common.timestamp import Timestamp
    from streaming_jobs.ingest.letters import Letter
    from streaming_jobs.ingest.source import Source

_FLUSH_TIMEOUT_S = 60.0
_STEP_S = 0.1  # how often to look whether the dataset's run is over
_CLOSE_TIMEOUT_S = 2.0
_MAX_REASON = 10_000  # characters

_log = structlog.get_logger(__name__)


class BrokenProducerError(OdfError):
    """The producer will never send again; a new process has to go on."""


class Messenger:
    """Sends in the order of the calls. Safe to share between threads."""

    def __init__(self, bootstrap_servers: str) -> None:
        # Dead letters hold what is larger than any other message of ours.
        self._producer = producer(bootstrap_servers, compression_type="lz4")
        self._failures: dict[str, str] = {}
        self._fatal: str | None = None

    def propose(self, completion: Completion) -> None:
        """Ask for a commit. Returns at once; `failure` tells later if the broker did not take it."""
        self._produce(COMPLETIONS, completion.to_json(), key=str(completion.dataset_id))
        self._producer.poll(0)

    def bury(
        self,
        dataset_id: DatasetId,
        source: Source,
        letters: Iterable[Letter],
        found: Timestamp,
        *,
        is_closed: Callable[[], bool],
    ) -> None:
        """Put records into the dead letters and wait until the broker has them, or until nobody wants it any more."""
        patience = _Patience(is_closed)
        for letter in letters:
            record = letter.record
            data, reason = _fitting(record)
            note = DeadLetterNote(
                dataset_id=dataset_id,
                source_name=source.name,
                topic=source.binding.topic,
                topic_id=source.topic_id,
                partition=record.partition,
                offset=record.offset,
                index=record.index,
                content_type=letter.content_type,
                piece_of=letter.piece_of,
                timestamp=record.timestamp,
                code=record.code,
                reason=reason,
                time=found,
            )
            self._enqueue(data, str(dataset_id), note, patience)
        while self._producer.flush(_STEP_S):
            patience.check()
        if (failure := self.failure(dataset_id)) is not None:
            raise StoreUnavailableError(failure)

    def failure(self, dataset_id: DatasetId) -> str | None:
        """What of a dataset was not delivered since this was asked last; its batches are to be built again."""
        self._producer.poll(0)
        return self._failures.pop(str(dataset_id), None)

    def check(self) -> None:
        """BrokenProducerError if nothing can be sent any more."""
        self._producer.poll(0)
        if self._fatal is not None:
            raise BrokenProducerError(f"the producer is broken and the process has to start anew: {self._fatal}")

    def close(self) -> None:
        """Send what waits, for a while."""
        self._producer.flush(_CLOSE_TIMEOUT_S)

    def _enqueue(self, data: bytes, key: str, note: DeadLetterNote, patience: _Patience) -> None:
        while True:
            try:
                self._produce(DEAD_LETTERS, data, key=key, headers={DEAD_LETTER_HEADER: note.to_json()})
            except BufferError:
                patience.check()
                self._producer.poll(_STEP_S)
            else:
                return

    def _produce(
        self, topic: str, value: bytes, *, key: str, headers: dict[str, str | bytes | None] | None = None
    ) -> None:
        from confluent_kafka import KafkaException

        try:
            self._producer.produce(topic, value, key=key, headers=headers or {}, on_delivery=self._delivered)
        except KafkaException as failed:
            error = failed.args[0]
            self._note_if_fatal(error)
            raise StoreUnavailableError(f"a message to topic {topic} cannot be sent: {error.str()}") from failed

    def _note_if_fatal(self, error: KafkaError) -> None:
        from confluent_kafka import KafkaError

        if error.fatal() or error.code() == KafkaError._FATAL:
            self._fatal = error.str()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._note_if_fatal(error)
            key = (message.key() or b"").decode()
            self._failures[key] = f"a message to topic {message.topic()} was not delivered: {error.str()}"
            _log.error("not delivered", topic=message.topic(), dataset=key, error=error.str())


class _Patience:
    """How long the broker may take for the dead letters of a batch."""

    def __init__(self, is_closed: Callable[[], bool]) -> None:
        self._is_closed = is_closed
        self._give_up = time.monotonic() + _FLUSH_TIMEOUT_S

    def check(self) -> None:
        if self._is_closed():
            raise StoreUnavailableError("the run is over: its dead letters are sent again with their batch")
        if time.monotonic() >= self._give_up:
            raise StoreUnavailableError("the broker does not take dead letters: they are sent again with their batch")


def _fitting(record: Unreadable) -> tuple[bytes, str]:
    """The bytes and the reason of a letter that the broker takes: other people's topics may hold larger messages."""
    size, reason = len(record.data), record.reason
    if len(reason) > _MAX_REASON:  # it may quote what the record says
        reason = f"{reason[:_MAX_REASON]}…"
    if size <= MAX_MESSAGE_SIZE:
        return record.data, reason
    return record.data[:MAX_MESSAGE_SIZE], f"{reason} (cut: {size} bytes, the first {MAX_MESSAGE_SIZE} are here)"
