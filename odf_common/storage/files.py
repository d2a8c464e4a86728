"""Local files that are replaced whole or not at all, and that reach the disk when asked."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from odf_common.errors import CorruptedError, NotFoundError, StoreUnavailableError

_PENDING = ".pending-"
_LEFT_OVER_AFTER_S = 3600.0
_NO_FILE = "it is not a file"


@contextmanager
def translated(place: str | Path) -> Iterator[None]:
    """Turn the errors of the operating system into those of the core."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"{place} does not exist") from error
    except OSError as error:
        raise unavailable(place, error) from error


def unavailable(place: str | Path, error: OSError) -> StoreUnavailableError:
    """The core's error for what the operating system could not do."""
    return StoreUnavailableError(f"{place}: {error.strerror or error}")


def make_folder(folder: Path) -> list[Path]:
    """Create a folder and its parents; returns the folders that got a new entry."""
    if folder.is_dir():
        return []
    missing = [path for path in (folder, *folder.parents) if not path.is_dir()]
    folder.mkdir(parents=True, exist_ok=True)
    return [path.parent for path in missing]


def new_pending(folder: Path) -> Path:
    """A name for a file in the making, on the same file system as its address."""
    return folder / f"{_PENDING}{secrets.token_hex(8)}"


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file so that readers see the old content or the new, never a part."""
    pending = new_pending(path.parent)
    try:
        with open(pending, "xb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(pending, path)
    except BaseException:
        with suppress(OSError):
            pending.unlink()
        raise
    if durable:
        sync_path(path.parent)


def read_bounded(path: str | Path, max_size: int, *, place: str | None = None) -> bytes:
    """A small file's content; CorruptedError, naming `place`, if it is larger than `max_size` or no regular file."""
    place = place or str(path)
    try:
        # Without O_NONBLOCK, a named pipe planted in a foreign folder would wait for its writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise CorruptedError(place, _NO_FILE) from error
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptedError(place, _NO_FILE)
        if status.st_size > max_size:
            raise CorruptedError(place, f"{status.st_size} bytes are more than it may have ({max_size})")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def sync_path(path: Path) -> None:
    """Wait until a file's content, or a folder's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_left_overs(folder: Path) -> None:
    """Delete the staging files of writers that died; those of the living are younger."""
    if not folder.is_dir():
        return
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            if entry.name.startswith(_PENDING) and time.time() - entry.stat().st_mtime > _LEFT_OVER_AFTER_S:
                os.unlink(entry)
