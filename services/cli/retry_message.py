"""The message that repeats a dead letter: its bytes as a payload of the source, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Callable

from odf_common.errors import OdfError
from odf_common.ingest.cutting import cut
from odf_common.ingest.messages import Code
from odf_common.kafka.topics import MAX_MESSAGE_SIZE
from odf_common.messages.dead_letter import DeadLetterNote
from odf_common.messages.dead_letter_retry import RETRY_EVENT_SOURCE
from odf_common.messages.payload import CONTENT_TYPE_HEADER, EVENT_ID_HEADER, EVENT_SOURCE_HEADER, RETRY_HEADER
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import (
    MergeStrategySnapshot,
    ReadStep,
    ReadStepCsv,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
)
from services.cli.dead_letter_topic import DeadLetter
from services.cli.producing import Outgoing

FetchOriginal = Callable[[str, int, int], bytes | None]
"""The value of a message by topic id, partition and offset; None if the topic has it no more, or only refers to it."""


class NotRetriableError(OdfError):
    """A dead letter that cannot be sent again as it is."""


def retry_message(letter: DeadLetter, source: AddPushSource, original: FetchOriginal) -> Outgoing:
    """NotRetriableError says why there is none."""
    note = letter.note
    _check(letter, source)
    place = f"{note.topic_id}/{note.partition}/{note.offset}" + ("" if note.index is None else f"/{note.index}")
    headers = {
        RETRY_HEADER: place,
        EVENT_ID_HEADER: f"{place}#{letter.attempts + 1}",
        EVENT_SOURCE_HEADER: RETRY_EVENT_SOURCE,
    }
    if note.content_type is not None:
        headers[CONTENT_TYPE_HEADER] = note.content_type
    return Outgoing(
        value=letter.value if note.index is None else _payload(letter, source, original),
        headers=headers,
        records=1,
        # Rows without an event time of their own get that of the message: it stays what it was.
        timestamp_ms=note.timestamp.ns // 1_000_000,
    )


def _check(letter: DeadLetter, source: AddPushSource) -> None:
    if len(letter.value) >= MAX_MESSAGE_SIZE and "(cut: " in letter.note.reason:
        raise NotRetriableError("only its beginning was kept: send the record from where it came from")
    note = letter.note
    is_part = note.index is not None or note.piece_of is not None or note.code == Code.INCOMPLETE_BATCH
    if is_part and isinstance(source.merge, MergeStrategySnapshot):
        raise NotRetriableError("it is a part of a snapshot, which counts as a whole: send the whole snapshot again")


def _payload(letter: DeadLetter, source: AddPushSource, original: FetchOriginal) -> bytes:
    """A single record as a payload in the format that is said for it."""
    step = _step(letter.note, source)
    match step:
        case ReadStepNdJson() | ReadStepNdGeoJson():
            return letter.value
        case ReadStepJson():
            return _at_path(letter.value, step.sub_path.split(".") if step.sub_path else [])
        case ReadStepGeoJson():
            return b'{"type":"FeatureCollection","features":[' + letter.value + b"]}"
        case ReadStepCsv():
            return _below_header(letter, step, original) if step.header else letter.value
        case _:
            raise NotRetriableError(f"it is a record of a {step.kind} file: send the file again")


def _step(note: DeadLetterNote, source: AddPushSource) -> ReadStep:
    from odf_common.ingest.media_types import step_for

    return source.read if note.content_type is None else step_for(note.content_type, source.read)


def _at_path(element: bytes, path: list[str]) -> bytes:
    found = b"[" + element + b"]"
    for key in reversed(path):
        found = b"{" + json.dumps(key).encode() + b":" + found + b"}"
    return found


def _below_header(letter: DeadLetter, step: ReadStepCsv, original: FetchOriginal) -> bytes:
    """A row says nothing without the header of its message."""
    value = original(letter.note.topic_id, letter.note.partition, letter.note.offset)
    header = None if value is None else next(cut(step.model_copy(update={"header": False}), [value], max_size=1), None)
    if header is None:
        raise NotRetriableError(
            "the header of its file is not kept: write header and record into a file, and send that with `odf ingest`"
        )
    return header + b"\n" + letter.value
