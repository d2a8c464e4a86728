"""Large payloads on their way to the upload area, in bounded memory and beside the event loop."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from odf_common.errors import NotFoundError, OdfError, StoreUnavailableError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.uploads import Upload, UploadArea
from services.gateway.body import Body
from services.gateway.errors import RequestError

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_BLOCK_SIZE = 1 << 20
MEMORY_SIZE = 3 * _BLOCK_SIZE
"""Bytes that a payload of any size takes here: a block that is written, one that is filled, and what just came."""

_LOOK_EVERY = 64  # blocks
_THREADS = 4
_TOKEN = re.compile(r"([0-9a-f]{32})-(0|[1-9][0-9]{0,17})-(f1220[0-9a-f]{64})")


class Uploads:
    """Writes uploads, in threads of its own: a slow disk must not keep small requests waiting."""

    def __init__(self, folder: Path, max_size: int, max_total: int | None = None) -> None:
        self._area = UploadArea(folder)
        self._max_total = max_total
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="uploads")
        self.max_size = max_size

    def close(self) -> None:
        """Stop, when what is being written is written."""
        self._threads.shutdown()

    async def store(self, dataset_id: DatasetId, beginning: list[bytes], body: Body) -> Upload:
        """Write what has come of a payload and the rest of it; whatever goes wrong, no file is left behind."""
        try:
            return await self._stored(dataset_id, beginning, body)
        except (StoreUnavailableError, NotFoundError) as error:
            _log.warning("a payload for %s could not be kept: %s", dataset_id, error)
            raise StoreUnavailableError(
                f"the payload could not be kept ({error}): nothing was published, come back later"
            ) from error

    async def _stored(self, dataset_id: DatasetId, beginning: list[bytes], body: Body) -> Upload:
        writing: asyncio.Future[None] | None = None
        await self._check_room()
        # Left without a turn of a thread, which nobody would wait for any more when the gateway stops.
        with await self._run(self._area.writer, dataset_id) as writer:
            try:
                number = 0
                async for block in _blocks(beginning, body):
                    number += 1
                    if number % _LOOK_EVERY == 0:
                        await self._check_room()
                    # One block is written while the next one comes in.
                    if writing is not None:
                        await writing
                    writing = self._run(writer.write, block)
                if writing is not None:
                    await writing
                return await self._run(writer.finish)
            finally:
                if writing is not None:
                    await asyncio.gather(writing, return_exceptions=True)

    async def _check_room(self) -> None:
        """StoreUnavailableError when the area holds what it may: whoever can publish could fill the disk."""
        if self._max_total is None:
            return
        used = await self._run(self._area.size)
        if used >= self._max_total:
            raise StoreUnavailableError(
                f"{used} bytes wait in the upload area, which may hold {self._max_total} (ODF_GATEWAY_MAX_UPLOADS_SIZE)"
            )

    async def remove(self, dataset_id: DatasetId, upload: Upload) -> None:
        """Delete an upload that no message refers to."""
        try:
            await self._run(self._area.remove, dataset_id, upload.name)
        except OSError as error:
            _log.warning("upload %s of %s stays until it is old: %s", upload.name, dataset_id, error)

    async def find(self, dataset_id: DatasetId, token: str) -> Upload:
        """The upload that a token names; RequestError if this dataset has none."""
        upload = parse_token(token)
        path = self._area.path(dataset_id, upload.name)
        if await self._run(_size, path) != upload.size:
            raise RequestError(
                "uploadToken: the dataset has no such upload. It may be of another dataset, or published already"
            )
        return upload

    def _run(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, function, *args)


def token_of(upload: Upload) -> str:
    """What names an upload to clients. It needs no secret: the ingest job compares size and hash with the file's."""
    return f"{upload.name}-{upload.size}-{upload.hash}"


def parse_token(token: str) -> Upload:
    """The upload that a token speaks of; RequestError for what is no token."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise RequestError("uploadToken: this is no token that POST /uploads answered")
    try:
        return Upload(found[1], Multihash.parse(found[3]), int(found[2]))
    except OdfError as error:
        raise RequestError(f"uploadToken: {error}") from error


async def _blocks(parts: list[bytes], body: Body) -> AsyncIterator[bytes]:
    """The payload in blocks of a size that is worth a turn of a thread. Empties `parts`."""
    size = sum(map(len, parts))
    while True:
        if size >= _BLOCK_SIZE:
            yield b"".join(parts)
            parts.clear()
            size = 0
        chunk = await body.next()
        if not chunk:
            break
        parts.append(chunk)
        size += len(chunk)
    if parts:
        yield b"".join(parts)
        parts.clear()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
