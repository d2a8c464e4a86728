"""Files of this machine: below the allowed folder, regular, and the same from their first byte to the last."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, unquote

from odf_common.metadata.sources import FetchStepUrl
from odf_common.timestamp import Timestamp
from services.poller.content import CHUNK_SIZE, copied, refuse_html
from services.poller.errors import (
    FetchDamagedError,
    FetchNotFoundError,
    FetchRefusedError,
    FetchUnreachableError,
    StepRefusedError,
)
from services.poller.fetch.url import event_time_of
from services.poller.fetched import Fetched, FetchJob, Found, UpToDate, last_modified
from services.poller.settings import PollerSettings

_MILLISECOND = 1_000_000


def fetch_file(step: FetchStepUrl, parts: SplitResult, job: FetchJob) -> Found:
    """Read a `file://` URL unless the file has the time of last time."""
    file, modified = opened(path_of(parts), job.settings)
    with file:
        state = last_modified(modified)
        if state == job.last:
            return UpToDate("the file has the time of last time")
        copy = whole_copy(file, job)
    return Fetched(file=copy, state=state, event_time=event_time_of(step, modified))


def path_of(parts: SplitResult) -> Path:
    """The absolute path in a `file://` URL."""
    if parts.netloc not in ("", "localhost"):
        raise StepRefusedError(f"a file URL has three slashes, file:///path: {parts.netloc!r} would be another machine")
    path = unquote(parts.path)
    if not path.startswith("/") or "\0" in path:
        raise StepRefusedError("a file URL holds an absolute path: file:///path")
    return Path(path)


def opened(path: Path, settings: PollerSettings) -> tuple[BinaryIO, Timestamp]:
    """A file and when it was modified; errors say why it may not or cannot be read."""
    real = _allowed(path, settings)
    try:
        # A pipe or a device would hold the one who opens it.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FetchNotFoundError(f"there is no file {path}") from error
    except OSError as error:
        raise FetchUnreachableError(f"the file {path} cannot be read: {error.strerror}") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise FetchRefusedError(f"{path} is no regular file")
    return os.fdopen(descriptor, "rb", buffering=0), Timestamp(found.st_mtime_ns // _MILLISECOND * _MILLISECOND)


def _allowed(path: Path, settings: PollerSettings) -> Path:
    """The file itself behind all links; it must lie below the root, if there is one."""
    try:
        real = path.resolve()
        root = settings.files_root.resolve() if settings.files_root is not None else None
    except (OSError, RuntimeError) as error:
        raise FetchUnreachableError(f"the file {path} cannot be reached: {error}") from error
    if root is not None and not real.is_relative_to(root):
        raise FetchRefusedError(f"{path} does not lie below {settings.files_root} (ODF_POLLER_FILES_ROOT)")
    return real


def whole_copy(file: BinaryIO, job: FetchJob) -> BinaryIO:
    """The file's bytes, of one moment; FetchDamagedError if somebody wrote meanwhile."""
    before = os.fstat(file.fileno())
    job.check_size(before.st_size)
    copy, _ = copied(_chunks(file), job)
    after = os.fstat(file.fileno())
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size) or copy.seek(0, 2) != after.st_size:
        raise FetchDamagedError("the file changed while it was read: write to another name, then rename")
    copy.seek(0)
    refuse_html(copy, job.prepare)
    return copy


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_SIZE):
        yield chunk
