"""Payloads as they come in: their format, their size, their time, their records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message as MimeMessage

from starlette.requests import ClientDisconnect

from odf_common.errors import InvalidTextError
from odf_common.ingest.cutting import Piece, cut_counted
from odf_common.metadata.sources import ReadStep
from odf_common.timestamp import Timestamp
from services.gateway.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    EmptyBodyError,
    MediaTypeError,
    RequestError,
    TooBusyError,
)

MEDIA_TYPES = {"NdJson": "application/x-ndjson", "Json": "application/json", "Csv": "text/csv"}
"""Read step → what its payloads are called."""

_CUT_IN_LOOP_SIZE = 64 << 10
_NS_PER_MS = 1_000_000


def check_media_type(read_step: ReadStep, content_type: str | None, content_encoding: str | None) -> None:
    """MediaTypeError unless a payload of this type is what the source reads."""
    wanted = MEDIA_TYPES.get(read_step.kind)
    if wanted is None:
        raise MediaTypeError(f"the source reads {read_step.kind}, which cannot be published here")
    if content_encoding not in (None, "", "identity"):
        raise MediaTypeError(f"the payload is encoded as {content_encoding!r}: send it as it is")
    header = MimeMessage()
    header["Content-Type"] = content_type or ""
    if not content_type or header.get_content_type() != wanted:
        found = repr(content_type[:100]) if content_type else "no Content-Type"
        raise MediaTypeError(f"the source reads {read_step.kind}: send Content-Type: {wanted}, not {found}")
    charset = header.get_content_charset("utf-8")
    if charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        raise MediaTypeError(f"the payload is in {charset[:50]!r}: send utf-8")


def event_time_ms(text: str | None) -> int | None:
    """The header `odf-event-time` as a Kafka timestamp; None without it."""
    if text is None:
        return None
    try:
        milliseconds = Timestamp.parse(text).ns // _NS_PER_MS
    except InvalidTextError as error:
        raise RequestError(f"header odf-event-time: {error}") from error
    # Kafka has no times before 1970, and its clients take 0 for none.
    if milliseconds <= 0:
        raise RequestError(f"header odf-event-time: {text} is not after 1970-01-01T00:00:00Z, as Kafka needs it")
    return milliseconds


@dataclass(slots=True)
class Budget:
    """How much may be under way at the same time. Used in the event loop only."""

    max_count: int
    max_size: int
    count: int = 0
    size: int = 0

    @contextmanager
    def payload(self) -> Iterator[Share]:
        """Room for one payload, given back at the end of the block; TooBusyError if there is none."""
        if self.count >= self.max_count:
            raise TooBusyError(f"{self.count} payloads are under way already: nothing of this one was published")
        share = Share(self)
        self.count += 1
        try:
            yield share
        finally:
            self.count -= 1
            self.size -= share.size


@dataclass(slots=True)
class Share:
    """What one payload takes of the budget."""

    budget: Budget
    size: int = 0

    def grow(self, size: int) -> None:
        """Take more; TooBusyError if there is no more."""
        if self.budget.size + size > self.budget.max_size:
            raise TooBusyError("too many bytes are under way already: nothing of this payload was published")
        self.budget.size += size
        self.size += size


async def read_body(
    chunks: AsyncIterator[bytes], share: Share, *, length: str | None, max_size: int, timeout_s: float
) -> list[bytes]:
    """The body's chunks: all of it, so that nothing is published of a payload that turns out to be wrong."""
    if length is not None and length.isdigit() and int(length[:20]) > max_size:
        raise BodyTooLargeError(max_size)
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in chunks:
                share.grow(len(chunk))
                if share.size > max_size:
                    raise BodyTooLargeError(max_size)
                parts.append(chunk)
    except TimeoutError as error:
        raise BodyTimeoutError(f"the payload did not come within {timeout_s:g} s: nothing was published") from error
    except ClientDisconnect as error:
        raise RequestError("the client went away before its payload was complete: nothing was published") from error
    return parts


async def messages_of(read_step: ReadStep, parts: list[bytes]) -> list[Piece]:
    """The messages that the payload becomes; EmptyBodyError if it has no records."""
    if sum(map(len, parts)) <= _CUT_IN_LOOP_SIZE:
        pieces = list(cut_counted(read_step, parts))
    else:
        pieces = await asyncio.to_thread(lambda: list(cut_counted(read_step, parts)))
    if not pieces:
        raise EmptyBodyError("the payload has no records: nothing was published")
    return pieces
