"""Files of FTP servers; where the server tells when they were modified, only those that have changed."""

from __future__ import annotations

import ftplib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import BinaryIO
from urllib.parse import SplitResult, unquote

from odf_common.metadata.sources import FetchStepUrl
from odf_common.timestamp import Timestamp
from services.poller.content import CHUNK_SIZE, content_state, copied, refuse_html
from services.poller.errors import (
    FetchDamagedError,
    FetchNotFoundError,
    FetchRefusedError,
    FetchUnreachableError,
    StepRefusedError,
)
from services.poller.fetch.hang_up import HangUp
from services.poller.fetch.url import event_time_of
from services.poller.fetched import Fetched, FetchJob, Found, UpToDate, last_modified

_NO_FILE = "550"
_MAX_TALK = 1 << 20  # bytes


def fetch_ftp(step: FetchStepUrl, parts: SplitResult, job: FetchJob) -> Found:
    """Fetch a file unless its time is that of last time."""
    if (refusal := job.refuse_uncached()) is not None:
        return refusal
    path = unquote(parts.path)
    if not path.strip("/") or any(each in path for each in "\r\n\0"):
        raise StepRefusedError("an FTP URL names a file: ftp://host/path")
    try:
        with HangUp(job) as hang_up, _Server(job, hang_up) as server:
            server.connect(parts.hostname or "", parts.port or ftplib.FTP_PORT)
            assert server.sock is not None
            server.sock.settimeout(job.settings.read_timeout_s)
            server.login(unquote(parts.username or ""), unquote(parts.password or ""))
            return _found(step, server, path, job)
    except ftplib.error_perm as error:
        if str(error).startswith(_NO_FILE):
            raise FetchNotFoundError(f"the server says {error}") from error
        raise FetchUnreachableError(f"the server says {error}") from error
    except (ftplib.Error, OSError, EOFError, UnicodeError) as error:
        job.check_time()
        raise FetchUnreachableError(f"the server could not be read: {error or type(error).__name__}") from error


class _Server(ftplib.FTP):
    """A connection whose answers are bounded in time and size."""

    def __init__(self, job: FetchJob, hang_up: HangUp) -> None:
        super().__init__(timeout=job.settings.connect_timeout_s)
        self._job = job
        self._hang_up = hang_up
        self._heard = 0

    def getline(self) -> str:
        """The next line that the server says."""
        if not self._heard:
            assert self.sock is not None
            self._hang_up.add(self.sock)
        line = super().getline()
        self._job.check_time()
        self._heard += len(line) + 1
        if self._heard > _MAX_TALK:
            raise FetchRefusedError(f"the server talks too much: more than {_MAX_TALK >> 20} MiB beside the file")
        return line


def _found(step: FetchStepUrl, server: ftplib.FTP, path: str, job: FetchJob) -> Found:
    server.voidcmd("TYPE I")
    modified = _modified(server, path)
    state = last_modified(modified) if modified is not None else None
    if state is not None and state == job.last:
        return UpToDate("the file has the time of last time")
    size = _size(server, path)
    if size is not None:
        job.check_size(size)
    file, content = copied(_chunks(server, path, job), job)
    _check_same(server, path, file, size, modified)
    state = state or content_state(content)
    if state == job.last:
        return UpToDate("its content is that of last time")
    refuse_html(file, job.prepare)
    return Fetched(file=file, state=state, event_time=event_time_of(step, modified))


def _modified(server: ftplib.FTP, path: str) -> Timestamp | None:
    """`213 20240131120000.123`, where the server knows the command."""
    with suppress(ftplib.error_perm, ValueError):
        text = server.sendcmd(f"MDTM {path}").removeprefix("213").strip()
        form = "%Y%m%d%H%M%S.%f" if "." in text else "%Y%m%d%H%M%S"
        return Timestamp.from_datetime(datetime.strptime(text, form).replace(tzinfo=UTC)).truncated_to_ms()
    return None


def _size(server: ftplib.FTP, path: str) -> int | None:
    with suppress(ftplib.error_perm):
        return server.size(path)
    return None


def _chunks(server: ftplib.FTP, path: str, job: FetchJob) -> Iterator[bytes]:
    with server.transfercmd(f"RETR {path}") as connection:
        connection.settimeout(job.settings.read_timeout_s)
        while chunk := connection.recv(CHUNK_SIZE):
            yield chunk
    server.voidresp()


def _check_same(server: ftplib.FTP, path: str, file: BinaryIO, size: int | None, modified: Timestamp | None) -> None:
    """A connection that ends looks like a file that ends."""
    read = file.seek(0, 2)
    file.seek(0)
    if (size is not None and read != size) or _modified(server, path) != modified:
        raise FetchDamagedError(f"the file changed while it was read, or ended early: {read} of {size} bytes came")
