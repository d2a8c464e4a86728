from __future__ import annotations

import pytest

from odf_common.identity.did import DatasetId
from odf_common.ingest.messages import Code
from odf_common.kafka.topics import MAX_MESSAGE_SIZE
from odf_common.messages.dead_letter import DeadLetterNote
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStep,
    ReadStepCsv,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odf_common.timestamp import Timestamp
from services.cli.dead_letter_topic import DeadLetter
from services.cli.producing import Outgoing
from services.cli.retry_message import NotRetriableError, retry_message

NOON = Timestamp.parse("2020-01-01T12:00:00Z")


def a_letter(
    value: bytes,
    *,
    index: int | None = None,
    attempts: int = 0,
    content_type: str | None = None,
    code: str = Code.WRONG_TYPE,
    reason: str = "no number",
    piece_of: str | None = None,
) -> DeadLetter:
    note = DeadLetterNote(
        dataset_id=DatasetId(bytes(32)),
        source_name="default",
        topic="t",
        topic_id="id",
        partition=2,
        offset=17,
        index=index,
        content_type=content_type,
        piece_of=piece_of,
        timestamp=NOON,
        code=code,
        reason=reason,
        time=NOON,
    )
    return DeadLetter(note, value, attempts)


def retried(
    letter: DeadLetter, read: ReadStep, *, merge: MergeStrategy | None = None, original: bytes | None = None
) -> Outgoing:
    source = AddPushSource(source_name="default", read=read, merge=merge or MergeStrategyAppend())
    return retry_message(letter, source, lambda topic_id, partition, offset: original)


def test_a_message_is_sent_as_it_was_with_its_place_and_time() -> None:
    message = retried(a_letter(b"x", content_type="text/csv", attempts=2), ReadStepNdJson())
    assert message.value == b"x"
    assert message.timestamp_ms == NOON.ns // 1_000_000
    assert message.headers == {
        "odf-retry": "id/2/17",
        "ce_id": "id/2/17#3",
        "ce_source": "odf-dead-letters",
        "content-type": "text/csv",
    }


def test_a_record_has_its_index_in_its_name() -> None:
    assert retried(a_letter(b"{}", index=3), ReadStepNdJson()).headers["odf-retry"] == "id/2/17/3"


@pytest.mark.parametrize(
    ("read", "value", "payload"),
    [
        (ReadStepNdJson(), b'{"a": 1}', b'{"a": 1}'),
        (ReadStepJson(), b'{"a": 1}', b'[{"a": 1}]'),
        (ReadStepJson(sub_path="x.y"), b"{}", b'{"x":{"y":[{}]}}'),
        (ReadStepGeoJson(), b"{}", b'{"type":"FeatureCollection","features":[{}]}'),
        (ReadStepCsv(), b"1,2", b"1,2"),
        (ReadStepCsv(header=True), b"1,2", b'a,"b\n"\n1,2'),
    ],
)
def test_a_record_becomes_a_payload_of_its_own(read: ReadStep, value: bytes, payload: bytes) -> None:
    assert retried(a_letter(value, index=0), read, original=b'a,"b\n"\n3,4\n5,6').value == payload


def test_a_row_without_its_header_is_not_sent() -> None:
    with pytest.raises(NotRetriableError, match="header"):
        retried(a_letter(b"1,2", index=0), ReadStepCsv(header=True))


def test_a_record_of_another_format_is_sent_in_that() -> None:
    letter = a_letter(b"{}", index=0, content_type="application/json")
    assert retried(letter, ReadStepCsv(header=True)).value == b"[{}]"


def test_a_letter_that_was_cut_is_not_sent() -> None:
    letter = a_letter(b"x" * MAX_MESSAGE_SIZE, reason="too large (cut: 99 bytes, the first 98 are here)")
    with pytest.raises(NotRetriableError, match="beginning"):
        retried(letter, ReadStepNdJson())


@pytest.mark.parametrize(
    "letter",
    [a_letter(b"{}", index=0), a_letter(b"{}", code=Code.INCOMPLETE_BATCH), a_letter(b"{}", piece_of="payload")],
)
def test_a_part_of_a_snapshot_is_not_sent_as_one(letter: DeadLetter) -> None:
    with pytest.raises(NotRetriableError, match="whole"):
        retried(letter, ReadStepNdJson(), merge=MergeStrategySnapshot(primary_key=("a",)))


def test_a_record_of_a_file_format_is_not_sent() -> None:
    with pytest.raises(NotRetriableError, match="Parquet"):
        retried(a_letter(b"x", index=0), ReadStepParquet())
