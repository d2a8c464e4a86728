"""The upload area: payloads that are too large for a message. A folder for each dataset, a file for each payload."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from odf_common.errors import MalformedBytesError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import SHA2_256, Multihash
from odf_common.storage.files import new_pending, sync_path, translated

_NAME = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Upload:
    """A payload that lies durably in the area."""

    name: str
    hash: Multihash
    size: int  # bytes


class UploadArea:
    """Writers fill it, the ingest job empties it. Safe to share between threads and processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def writer(self, dataset_id: DatasetId) -> UploadWriter:
        """A file in the making; StoreUnavailableError if it cannot be written."""
        return UploadWriter(self._folder_of(dataset_id))

    def write(self, dataset_id: DatasetId, chunks: Iterable[bytes]) -> Upload:
        """Take a whole payload."""
        with self.writer(dataset_id) as writer:
            for chunk in chunks:
                writer.write(chunk)
            return writer.finish()

    def path(self, dataset_id: DatasetId, name: str) -> Path:
        """Where an upload lies, whether it does or not; MalformedBytesError for what is no name of one."""
        if _NAME.fullmatch(name) is None:
            raise MalformedBytesError(f"{name[:80]!r} is not the name of an upload: it has 32 hexadecimal digits")
        return self._folder_of(dataset_id) / name

    def remove(self, dataset_id: DatasetId, name: str) -> None:
        """Delete an upload; one that is gone already is fine."""
        self.path(dataset_id, name).unlink(missing_ok=True)

    def remove_older_than(self, dataset_id: DatasetId, age_s: float) -> None:
        """Delete what nobody came for, finished or not."""
        oldest = time.time() - age_s
        for path in self._folder_of(dataset_id).glob("*"):
            with suppress(OSError):  # also what is no file, or not ours
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def size(self) -> int:
        """Bytes of all that lies here, finished or not."""
        total = 0
        for path in self._folder.glob("*/*"):
            with suppress(OSError):
                total += path.stat().st_size
        return total

    def _folder_of(self, dataset_id: DatasetId) -> Path:
        return self._folder / dataset_id.multibase


class UploadWriter:
    """One upload; leaving the `with` block without `finish` removes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hasher = hashlib.sha256()
        self._pending = new_pending(folder)
        self.size = 0
        with translated(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self._pending, "xb")  # noqa: SIM115 - closed with the writer

    def write(self, data: bytes) -> None:
        """Add bytes; StoreUnavailableError if the disk does not take them."""
        with translated(self._folder):
            self._file.write(data)
        self._hasher.update(data)
        self.size += len(data)

    def finish(self) -> Upload:
        """Make it durable and give it its name."""
        name = secrets.token_hex(16)
        with translated(self._folder):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._pending.replace(self._folder / name)
            sync_path(self._folder)
        return Upload(name, Multihash(SHA2_256, self._hasher.digest()), self.size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._file.close()  # which tries once more to write what a full disk did not take
        with suppress(OSError):
            self._pending.unlink(missing_ok=True)
