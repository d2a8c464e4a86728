"""Keys of an object store (S3 and the like, or memory), and the one place that knows the errors of obstore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from odf_common.errors import CorruptedError, NotFoundError, StoreUnavailableError

if TYPE_CHECKING:
    from obstore.store import MemoryStore, S3Store

_PART_SIZE = 8 * 1024 * 1024  # bytes
_PARTS_IN_FLIGHT = 4
_LISTED_AT_ONCE = 1000
_SHOWN_CHARACTERS = 300


class KeyMovedError(Exception):
    """A conditional write found another version than it expected."""


class Bucket:
    """All keys below a prefix of an object store; many of them share one client."""

    def __init__(self, store: S3Store | MemoryStore, url: str, prefix: str = "") -> None:
        self._store = store
        self._url = url
        self._prefix = prefix

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place('')!r})"

    def under(self, folder: str) -> Bucket:
        """The keys of a folder."""
        return Bucket(self._store, self._url, f"{self._prefix}{folder}/")

    def place(self, key: str) -> str:
        """The key as messages name it."""
        return f"{self._url}/{self._prefix}{key}"

    def size(self, key: str) -> int:
        """The value's size in bytes; NotFoundError if there is none."""
        with self._translated(key):
            return self._store.head(self._prefix + key)["size"]

    def has(self, key: str) -> bool:
        """Whether there is a value."""
        try:
            self.size(key)
        except NotFoundError:
            return False
        return True

    def get(self, key: str, *, max_size: int) -> bytes:
        """The value; CorruptedError if it is larger than `max_size`."""
        return self.get_versioned(key, max_size=max_size)[0]

    def get_versioned(self, key: str, *, max_size: int) -> tuple[bytes, str | None]:
        """The value, and the version that `replace` wants."""
        with self._translated(key):
            answer = self._store.get(self._prefix + key)
            size = answer.meta["size"]
            if size > max_size:
                raise CorruptedError(self.place(key), f"{size} bytes are more than it may have ({max_size})")
            return bytes(answer.bytes()), answer.meta["e_tag"]

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """A part of the value, `end` excluded."""
        with self._translated(key):
            return bytes(self._store.get_range(self._prefix + key, start=start, end=end))

    def chunks(self, key: str) -> Iterator[bytes]:
        """The value in bounded parts, each its own request: a slow reader cannot run into a time limit."""
        size = self.size(key)
        for start in range(0, size, _PART_SIZE):
            yield self.get_range(key, start, min(start + _PART_SIZE, size))

    def put(self, key: str, value: bytes | Path) -> None:
        """Write a value, or the content of a file in parts."""
        self._put(key, value)

    def create(self, key: str, value: bytes) -> None:
        """Write the first value; KeyMovedError if there is one."""
        self._put(key, value, mode="create")

    def replace(self, key: str, value: bytes, *, version: str | None) -> None:
        """Write in place of the given version; KeyMovedError if that is no longer the value's."""
        self._put(key, value, mode={"e_tag": version})

    def remove(self, key: str) -> None:
        """Delete a value; it is fine if there is none."""
        with self._translated(key):
            self._store.delete(self._prefix + key)

    def all_keys(self) -> Iterator[str]:
        """All keys, in no order, as a stream."""
        with self._translated(""):
            for page in self._store.list(self._prefix or None, chunk_size=_LISTED_AT_ONCE):
                for entry in page:
                    yield entry["path"].removeprefix(self._prefix)

    def folders(self) -> list[str]:
        """The names directly below, as if `/` separated folders."""
        with self._translated(""):
            listed = self._store.list_with_delimiter(self._prefix or None)
        return [folder.removeprefix(self._prefix) for folder in listed["common_prefixes"]]

    def _put(self, key: str, value: bytes | Path, **options: Any) -> None:
        try:
            with self._translated(key):
                obstore.put(
                    self._store,
                    self._prefix + key,
                    value,
                    chunk_size=_PART_SIZE,
                    max_concurrency=_PARTS_IN_FLIGHT,
                    **options,
                )
        except NotFoundError as error:
            raise StoreUnavailableError(f"{self.place(key)}: there is no such bucket") from error.__cause__

    @contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFoundError(f"{self.place(key)} does not exist") from error
        except (AlreadyExistsError, PreconditionError) as error:
            raise KeyMovedError from error
        except (BaseError, OSError) as error:
            reason = str(error).partition("\n")[0][:_SHOWN_CHARACTERS]
            raise StoreUnavailableError(f"{self.place(key)}: {reason}") from error
