"""What cutting works with: a payload that comes in chunks, and the messages that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from odf_common.errors import MalformedBytesError

MAX_RECORD_SIZE = 8 << 20
"""Bytes."""

MAX_AROUND_SIZE = 1 << 20
"""Bytes of a CSV header, or of the keys around an array, which every message repeats."""

MAX_MESSAGE_SIZE = MAX_RECORD_SIZE + MAX_AROUND_SIZE
"""Bytes; larger messages are not read. Topics take more, so that what is too large can be a dead letter."""

_MAX_CHUNK = 256 << 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class RecordTooLargeError(MalformedBytesError):
    """A record has more bytes than any message may carry; `number` counts from 1."""

    def __init__(self, what: str, number: int, *, limit: int = MAX_RECORD_SIZE) -> None:
        self.number = number
        super().__init__(f"{what} {number} is larger than the {limit} bytes that it may have")


class Piece(NamedTuple):
    """A message and the number of records in it."""

    data: bytes
    records: int


class Source:
    """Chunks with a buffer in front. A byte order mark at the beginning is left out."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = _small(chunks)
        self.buffer = b""
        self.ended = False
        self.taken = 0
        """How many bytes have left the buffer."""
        self.fill(len(BYTE_ORDER_MARK))
        if self.buffer.startswith(BYTE_ORDER_MARK):
            self.take(len(BYTE_ORDER_MARK))

    def fill(self, size: int) -> None:
        """Have at least so many bytes in the buffer, or all that there are."""
        if self.ended or len(self.buffer) >= size:
            return
        parts, length = [self.buffer], len(self.buffer)
        for chunk in self._chunks:
            parts.append(chunk)
            length += len(chunk)
            if length >= size:
                break
        else:
            self.ended = True
        self.buffer = b"".join(parts)

    def take(self, size: int) -> bytes:
        """Remove bytes from the front."""
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        self.taken += len(taken)
        return taken


def _small(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks that are cheap to move, whatever sizes come."""
    for chunk in chunks:
        if len(chunk) <= _MAX_CHUNK:
            yield chunk
        else:
            yield from (chunk[start : start + _MAX_CHUNK] for start in range(0, len(chunk), _MAX_CHUNK))
