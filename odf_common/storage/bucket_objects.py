"""Objects as keys of an object store."""

# ruff: noqa: D102 (the methods are described by the port, ObjectStore)

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import SEEK_CUR, SEEK_SET, BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING

from odf_common.errors import NotFoundError
from odf_common.identity.multihash import Multihash
from odf_common.storage.layout import INFO_FOLDER, ObjectKind, check_info_name, hash_of_name
from odf_common.wire.limits import MAX_BLOCK_SIZE

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from odf_common.storage.bucket import Bucket

_READ_AHEAD = 64 * 1024  # bytes


class BucketObjects:
    """An ObjectStore below a prefix of an object store.

    Only canonical file names are found: each other spelling would cost a request.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._bucket!r})"

    def has(self, kind: ObjectKind, object_hash: Multihash) -> bool:
        return self._bucket.has(_key(kind, object_hash))

    def size(self, kind: ObjectKind, object_hash: Multihash) -> int:
        return self._bucket.size(_key(kind, object_hash))

    def get_block(self, block_hash: Multihash, *, max_size: int = MAX_BLOCK_SIZE) -> bytes:
        return self._bucket.get(_key(ObjectKind.BLOCKS, block_hash), max_size=max_size)

    def put_block(self, block_hash: Multihash, data: bytes) -> None:
        self._bucket.put(_key(ObjectKind.BLOCKS, block_hash), data)

    def put_file(self, kind: ObjectKind, object_hash: Multihash, path: Path) -> None:
        key = _key(kind, object_hash)
        if not path.exists():
            if self._bucket.has(key):
                return
            raise NotFoundError(f"{path} does not exist")
        self._bucket.put(key, path)
        path.unlink(missing_ok=True)

    def read_chunks(self, kind: ObjectKind, object_hash: Multihash) -> Iterator[bytes]:
        return self._bucket.chunks(_key(kind, object_hash))

    def open_file(self, kind: ObjectKind, object_hash: Multihash) -> BufferedReader:
        return BufferedReader(_BucketFile(self._bucket, _key(kind, object_hash)), _READ_AHEAD)

    def local_path(self, kind: ObjectKind, object_hash: Multihash) -> Path | None:
        return None

    def hashes(self, kind: ObjectKind) -> Iterator[Multihash]:
        for key in self._bucket.under(kind.value).all_keys():
            if (found := hash_of_name(key)) is not None:
                yield found

    def get_info(self, name: str) -> bytes | None:
        check_info_name(name)
        try:
            return self._bucket.get(f"{INFO_FOLDER}/{name}", max_size=MAX_BLOCK_SIZE)
        except NotFoundError:
            return None

    def put_info(self, name: str, data: bytes) -> None:
        check_info_name(name)
        self._bucket.put(f"{INFO_FOLDER}/{name}", data)

    def sync(self, named: Iterable[tuple[ObjectKind, Multihash]] = ()) -> None:
        """Nothing to wait for: an object store answers when the value is safe."""


class _BucketFile(RawIOBase):
    """A value as a seekable file; each read is one request for just that range."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._size = bucket.size(key)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        base = {SEEK_SET: 0, SEEK_CUR: self._position}.get(whence, self._size)
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        end = min(self._position + len(view), self._size)
        if self._position >= end:
            return 0
        data = self._bucket.get_range(self._key, self._position, end)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)


def _key(kind: ObjectKind, object_hash: Multihash) -> str:
    return f"{kind.value}/{object_hash}"
