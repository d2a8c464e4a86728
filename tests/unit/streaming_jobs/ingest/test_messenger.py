from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from odf_common.errors import StoreUnavailableError
from odf_common.ingest.messages import Problem, Unreadable
from odf_common.kafka.topics import MAX_MESSAGE_SIZE
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest import messenger as messenger_module
from streaming_jobs.ingest.letters import Letter, MessageLetters
from streaming_jobs.ingest.messenger import BrokenProducerError, Messenger
from tests.unit.streaming_jobs.ingest.builders import LONG_AGO, Bench, messages


class PlayedProducer:
    """Keeps what it is given for ever."""

    def __init__(self) -> None:
        self.kept: list[tuple[bytes, DeadLetterNote]] = []
        self.error: KafkaException | None = None
        self.is_full = False
        self.on_delivery: Callable[[KafkaError | None, Message], None] | None = None

    def produce(self, topic: str, value: bytes, *, headers: dict[str, bytes], on_delivery: Any, **_: object) -> None:
        if self.error is not None:
            raise self.error
        if self.is_full:
            raise BufferError
        self.on_delivery = on_delivery
        self.kept.append((value, DeadLetterNote.from_json(headers[DEAD_LETTER_HEADER])))

    def poll(self, _: float) -> int:
        return 0

    def flush(self, _: float) -> int:
        return len(self.kept)


class SomeMessage:
    def key(self) -> bytes:
        return b"key"

    def topic(self) -> str:
        return "odf.completions"


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> PlayedProducer:
    played = PlayedProducer()
    monkeypatch.setattr(messenger_module, "producer", lambda *_, **__: played)
    return played


@pytest.fixture
def messenger(producer: PlayedProducer) -> Iterator[Messenger]:
    with closing(Messenger("127.0.0.1:1")) as made:
        yield made


def bury(messenger: Messenger, folder: Path, data: bytes, is_closed: Callable[[], bool] = lambda: True) -> None:
    bench = Bench(folder)
    record = Unreadable(
        partition=0, offset=7, index=None, timestamp=LONG_AGO, code="InvalidJson", reason="no JSON", data=data
    )
    messenger.bury(
        bench.dataset_id,
        bench.source(),
        [Letter(record=record, content_type="text/csv")],
        Timestamp.now(),
        is_closed=is_closed,
    )


def test_burying_ends_with_its_run(messenger: Messenger, producer: PlayedProducer, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="the run is over"):
        bury(messenger, tmp_path, b"broken")
    assert [data for data, _ in producer.kept] == [b"broken"]
    producer.is_full = True
    with pytest.raises(StoreUnavailableError, match="the run is over"):
        bury(messenger, tmp_path / "full", b"broken")


def test_burying_gives_up(
    messenger: Messenger, producer: PlayedProducer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messenger_module, "_FLUSH_TIMEOUT_S", 0.0)
    with pytest.raises(StoreUnavailableError, match="does not take dead letters"):
        bury(messenger, tmp_path, b"broken", lambda: False)


def test_a_broker_that_is_away_does_not_keep_a_run_from_ending(tmp_path: Path) -> None:
    real = Messenger("127.0.0.1:1")
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError, match="the run is over"):
        bury(real, tmp_path, b"broken")
    assert time.monotonic() - began < 5


def test_a_record_that_no_letter_holds_is_cut(messenger: Messenger, producer: PlayedProducer, tmp_path: Path) -> None:
    for size in (MAX_MESSAGE_SIZE, MAX_MESSAGE_SIZE + 5):
        with pytest.raises(StoreUnavailableError):
            bury(messenger, tmp_path / str(size), b"x" * size)
    assert [len(data) for data, _ in producer.kept] == [MAX_MESSAGE_SIZE] * 2
    whole, cut = (note.reason for _, note in producer.kept)
    assert whole == "no JSON"
    assert cut == f"no JSON (cut: {MAX_MESSAGE_SIZE + 5} bytes, the first {MAX_MESSAGE_SIZE} are here)"


def test_a_message_that_was_not_delivered_is_no_reason_to_end(
    messenger: Messenger, producer: PlayedProducer, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnavailableError):
        bury(messenger, tmp_path, b"broken")
    assert producer.on_delivery is not None
    producer.on_delivery(KafkaError(KafkaError._MSG_TIMED_OUT), cast(Message, SomeMessage()))
    messenger.check()
    producer.on_delivery(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True), cast(Message, SomeMessage()))
    with pytest.raises(BrokenProducerError, match="has to start anew"):
        messenger.check()


def test_a_producer_that_is_broken_is_noticed(messenger: Messenger, producer: PlayedProducer, tmp_path: Path) -> None:
    producer.error = KafkaException(KafkaError(KafkaError._FATAL))
    with pytest.raises(StoreUnavailableError, match="cannot be sent"):
        bury(messenger, tmp_path, b"broken")
    with pytest.raises(BrokenProducerError):
        messenger.check()


def test_notes_stay_small_whatever_headers_and_records_say(
    messenger: Messenger, producer: PlayedProducer, tmp_path: Path
) -> None:
    """Or the broker would take neither the letter nor anything behind it, ever."""
    long = b"\x01" * 3_000_000  # each of which takes six bytes in JSON
    message = messages(b"{}", headers={"content-type": long, "odf-batch-id": long})
    letters = MessageLetters(message, Problem("WrongMediaType", f"no format {long.decode()!r}"))
    bench = Bench(tmp_path)
    with pytest.raises(StoreUnavailableError):
        messenger.bury(bench.dataset_id, bench.source(), letters, Timestamp.now(), is_closed=lambda: True)
    ((_, note),) = producer.kept
    assert len(note.to_json()) < 100_000
    assert note.reason.startswith("no format")
