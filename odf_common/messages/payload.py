"""Messages of push topics: the headers that say more than the bytes do, and references to payloads that lie elsewhere.

A message without headers is a payload in the format of the source's read step.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from odf_common.identity.multihash import Multihash
from odf_common.messages.base import Message

CONTENT_TYPE_HEADER = "content-type"
"""The media type of the message's value, where it is not that of the source's read step."""

EVENT_ID_HEADER = "ce_id"
"""With it a message is taken once (CloudEvents Kafka binding, binary mode); ids of different sources differ."""

EVENT_SOURCE_HEADER = "ce_source"

BATCH_ID_HEADER = "odf-batch-id"
"""Pieces of one payload have the same id and stand one behind the other in one partition."""

BATCH_INDEX_HEADER = "odf-batch-index"
"""The place of a piece, from 0, as decimal digits."""

BATCH_COUNT_HEADER = "odf-batch-count"
"""The number of pieces, as decimal digits."""

POLL_HEADER = "odf-poll"
"""A `PollNote`."""

RETRY_HEADER = "odf-retry"
"""`topic_id/partition/offset[/index]` of the dead letter that the message repeats."""

UPLOAD_MEDIA_TYPE = "application/vnd.odf-streams.upload+json"
"""The content type of a message whose value is an `UploadedPayload`."""

MAX_INLINE_SIZE = 1 << 20
"""Bytes of a payload that services put into messages; larger ones go to the upload area."""


class UploadedPayload(Message):
    """A payload in the upload area, in place of the payload itself."""

    version: Literal[1] = 1
    name: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    """Of the file in the dataset's folder of the upload area."""
    hash: Multihash
    """SHA2-256 of the bytes: it guards the way, and costs a quarter of SHA3."""
    size: Annotated[int, Field(ge=0)]  # bytes
    media_type: Annotated[str, StringConstraints(max_length=200)] | None = None
    """Absent: the format of the source's read step."""


class FetchedState(Message):
    """What a polling source was at: `odf/etag`, `odf/last-modified` (RFC 3339) or a kind of our own."""

    kind: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    value: Annotated[str, StringConstraints(max_length=4_000)]


class PollNote(Message):
    """What a poll found, and on which state it builds: the message is taken only if the source is still there."""

    expected: FetchedState | None = None
    fetched: FetchedState | None = None
