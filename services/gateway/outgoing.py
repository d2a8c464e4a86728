"""What a payload becomes: Kafka messages of whole records, one message with all of it, or one that refers to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from odf_common.ingest.cutting import DEFAULT_SIZE, UncuttableFormatError, cut_counted
from odf_common.messages.payload import (
    CONTENT_TYPE_HEADER,
    MAX_INLINE_SIZE,
    UPLOAD_MEDIA_TYPE,
    UploadedPayload,
)
from odf_common.metadata.sources import MergeStrategy, MergeStrategySnapshot, ReadStep
from odf_common.uploads import Upload
from services.gateway.errors import EmptyBodyError
from services.gateway.event_ids import EventId
from services.gateway.formats import Format

_CUT_IN_LOOP_SIZE = 64 << 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

KafkaHeaders = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message."""

    value: bytes
    headers: KafkaHeaders


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """The messages of a payload."""

    messages: list[Outgoing]
    records: int | None
    """None where nobody looked."""
    size: int  # bytes
    upload: Upload | None = None


async def inline(parts: list[bytes], form: Format, merge: MergeStrategy, event_id: EventId | None) -> Payload:
    """The messages of a small payload; EmptyBodyError if it has no records."""
    size = sum(map(len, parts))
    is_whole = isinstance(merge, MergeStrategySnapshot)
    if size <= _CUT_IN_LOOP_SIZE:
        values, records = _values(form.step, parts, is_whole)
    else:
        values, records = await asyncio.to_thread(_values, form.step, parts, is_whole)
    if not values:
        hint = ". A snapshot of nothing is `[]` as application/json, or a CSV header alone" if is_whole else ""
        raise EmptyBodyError(f"the payload has no records: nothing was published{hint}")
    headers: KafkaHeaders = [] if form.media_type is None else [(CONTENT_TYPE_HEADER, form.media_type.encode())]
    return Payload(messages=_messages(values, headers, event_id), records=records, size=size)


def uploaded(upload: Upload, form: Format, event_id: EventId | None) -> Payload:
    """The message that refers to an upload."""
    reference = UploadedPayload(name=upload.name, hash=upload.hash, size=upload.size, media_type=form.media_type)
    headers: KafkaHeaders = [(CONTENT_TYPE_HEADER, UPLOAD_MEDIA_TYPE.encode())]
    messages = _messages([reference.to_json()], headers, event_id)
    return Payload(messages=messages, records=None, size=upload.size, upload=upload)


def _values(step: ReadStep, parts: list[bytes], is_whole: bool) -> tuple[list[bytes], int | None]:
    """The messages' values and the number of records in them; MalformedBytesError where they have no ends."""
    if not any(part.strip() for part in parts):
        return [], 0
    try:
        pieces = list(cut_counted(step, parts, max_size=MAX_INLINE_SIZE if is_whole else DEFAULT_SIZE))
    except UncuttableFormatError:
        return [b"".join(parts)], None
    records = sum(piece.records for piece in pieces)
    # A snapshot says what is there by what it does not hold, too: it is one message, also with no records.
    if is_whole:
        return [b"".join(parts).removeprefix(_BYTE_ORDER_MARK)], records
    return [piece.data for piece in pieces], records


def _messages(values: Sequence[bytes], headers: KafkaHeaders, event_id: EventId | None) -> list[Outgoing]:
    if event_id is None:
        return [Outgoing(value, headers) for value in values]
    ids = event_id.header_sets(len(values))
    return [Outgoing(value, [*headers, *own]) for value, own in zip(values, ids, strict=True)]
