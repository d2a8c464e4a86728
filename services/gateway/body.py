"""The body of a request as it comes in: bounded in size and in time, and as long as it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect

from services.gateway.budget import Share
from services.gateway.errors import BodyTimeoutError, BodyTooLargeError, RequestError

_TIMED_SIZE = 1 << 20
_MAX_DIGITS = 20


class Body:
    """Chunks of a payload. Each MiB gets the same time, so that a large payload may take long, but not for ever."""

    def __init__(
        self, chunks: AsyncIterator[bytes], *, length: str | None = None, max_size: int, timeout_s: float
    ) -> None:
        self._chunks = chunks
        self._length = _number(length)
        self._max_size = max_size
        self._timeout_s = timeout_s
        self._began = asyncio.get_running_loop().time()
        self.size = 0
        self.ended = False
        if self._length is not None and self._length > max_size:
            raise BodyTooLargeError(max_size)

    async def next(self) -> bytes:
        """The next bytes, b"" at the end."""
        try:
            async with asyncio.timeout_at(self._began + self._timeout_s * (1 + self.size // _TIMED_SIZE)):
                chunk = await self._next_filled()
        except TimeoutError as error:
            raise BodyTimeoutError(
                f"{self.size} bytes of the payload came, but not the next ones within {self._timeout_s:g} s for each "
                "MiB: nothing was published"
            ) from error
        except ClientDisconnect as error:
            raise RequestError("the client went away before its payload was complete: nothing was published") from error
        self.size += len(chunk)
        if self.size > self._max_size:
            raise BodyTooLargeError(self._max_size)
        if not chunk:
            self._end()
        return chunk

    async def beginning(self, size: int, share: Share) -> list[bytes]:
        """All chunks of a payload that has no more than `size` bytes; of a larger one those up to there."""
        parts: list[bytes] = []
        while self.size <= size and (chunk := await self.next()):
            share.grow(len(chunk))
            parts.append(chunk)
        return parts

    async def _next_filled(self) -> bytes:
        async for chunk in self._chunks:
            if chunk:
                return chunk
        return b""

    def _end(self) -> None:
        self.ended = True
        if self._length is not None and self._length != self.size:
            raise RequestError(
                f"the payload has {self.size} bytes, its Content-Length says {self._length}: nothing was published"
            )


def _number(length: str | None) -> int | None:
    if length is None or not (length.isascii() and length.isdigit()):
        return None
    # Cut, as reading very long numbers is slow; what is left is too large anyhow.
    return int(length.lstrip("0")[:_MAX_DIGITS] or "0")
