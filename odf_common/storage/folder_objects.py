"""Objects as files of a local folder.

Written with the operating system's own calls: obstore's local store never syncs, and reads a small file four times
slower than `open` does (docs/decisions/0007-object-storage.md).
"""

# ruff: noqa: D102 (the methods are described by the port, ObjectStore)

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from threading import Lock

from odf_common.errors import NotFoundError
from odf_common.identity.multihash import Multihash
from odf_common.storage.files import (
    make_folder,
    new_pending,
    read_bounded,
    remove_left_overs,
    replace_file,
    sync_path,
    translated,
    unavailable,
)
from odf_common.storage.layout import (
    INFO_FOLDER,
    ObjectKind,
    check_info_name,
    hash_of_name,
    other_spellings,
)
from odf_common.wire.limits import MAX_BLOCK_SIZE

_CHUNK_SIZE = 1024 * 1024  # bytes
_SYNC_THREADS = 16
_MANY_FILES = 32


class FolderObjects:
    """An ObjectStore in a local folder, which is created with the first object."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = {kind: root / kind.value for kind in ObjectKind}
        self._prefixes = {kind: f"{folder}{os.sep}" for kind, folder in self._folders.items()}
        self._unsynced = _Unsynced()
        self._has_put = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._root)!r})"

    def has(self, kind: ObjectKind, object_hash: Multihash) -> bool:
        return self.local_path(kind, object_hash) is not None

    def size(self, kind: ObjectKind, object_hash: Multihash) -> int:
        path = self._existing(kind, object_hash)
        with translated(path):
            return path.stat().st_size

    def get_block(self, block_hash: Multihash, *, max_size: int = MAX_BLOCK_SIZE) -> bytes:
        path = f"{self._prefixes[ObjectKind.BLOCKS]}{block_hash}"
        try:
            return read_bounded(path, max_size)
        except FileNotFoundError:
            respelled = self._existing(ObjectKind.BLOCKS, block_hash)
        except OSError as error:
            raise unavailable(path, error) from error
        with translated(respelled):
            return read_bounded(respelled, max_size)

    def put_block(self, block_hash: Multihash, data: bytes) -> None:
        path = self._address(ObjectKind.BLOCKS, block_hash)
        with translated(path):
            self._prepare(path.parent)
            replace_file(path, data)
        self._unsynced.add(path)

    def put_file(self, kind: ObjectKind, object_hash: Multihash, path: Path) -> None:
        address = self._address(kind, object_hash)
        with translated(path):
            self._prepare(address.parent)
            try:
                _move(path, address)
            except FileNotFoundError:
                if not address.is_file():
                    raise
        self._unsynced.add(address)

    def read_chunks(self, kind: ObjectKind, object_hash: Multihash) -> Iterator[bytes]:
        with self.open_file(kind, object_hash) as file, translated(file.name):
            while chunk := file.read(_CHUNK_SIZE):
                yield chunk

    def open_file(self, kind: ObjectKind, object_hash: Multihash) -> BufferedReader:
        path = self._existing(kind, object_hash)
        with translated(path):
            return open(path, "rb")

    def local_path(self, kind: ObjectKind, object_hash: Multihash) -> Path | None:
        try:
            return self._existing(kind, object_hash)
        except NotFoundError:
            return None

    def hashes(self, kind: ObjectKind) -> Iterator[Multihash]:
        folder = self._folders[kind]
        with suppress(NotFoundError), translated(folder), os.scandir(folder) as entries:
            for entry in entries:
                if (found := hash_of_name(entry.name)) is not None:
                    yield found

    def get_info(self, name: str) -> bytes | None:
        path = self._info_path(name)
        with suppress(NotFoundError), translated(path):
            return read_bounded(path, MAX_BLOCK_SIZE)
        return None

    def put_info(self, name: str, data: bytes) -> None:
        path = self._info_path(name)
        with translated(path):
            make_folder(path.parent)
            replace_file(path, data)

    def sync(self, named: Iterable[tuple[ObjectKind, Multihash]] = ()) -> None:
        for kind, object_hash in named:
            if (path := self.local_path(kind, object_hash)) is not None:
                self._unsynced.add(path)
                # Whoever put it may also have made these folders.
                self._unsynced.add_folder(self._root)
                self._unsynced.add_folder(self._root.parent)
        with translated(self._root):
            self._unsynced.sync()

    def remove_left_overs(self) -> None:
        """Delete what writers that died left in the making."""
        for folder in (*self._folders.values(), self._root / INFO_FOLDER):
            with translated(folder):
                remove_left_overs(folder)

    def _address(self, kind: ObjectKind, object_hash: Multihash) -> Path:
        return self._folders[kind] / str(object_hash)

    def _info_path(self, name: str) -> Path:
        check_info_name(name)
        return self._root / INFO_FOLDER / name

    def _existing(self, kind: ObjectKind, object_hash: Multihash) -> Path:
        """The object's file, whichever way its name is spelled."""
        address = self._address(kind, object_hash)
        with translated(address):
            if address.is_file():
                return address
            for name in other_spellings(object_hash):
                path = self._folders[kind] / name
                if path.is_file():
                    return path
        raise NotFoundError(f"{address} does not exist")

    def _prepare(self, folder: Path) -> None:
        if not self._has_put:
            # Whoever made these folders, such as a process that died, may not have synced them. Once is enough.
            self._has_put = True
            self._unsynced.add_folder(self._root)
            self._unsynced.add_folder(self._root.parent)
        for changed in make_folder(folder):
            self._unsynced.add_folder(changed)


class _Unsynced:
    """The files and folders that a power failure could still take away."""

    def __init__(self) -> None:
        self._files: set[Path] = set()
        self._folders: set[Path] = set()
        self._changing = Lock()
        self._syncing = Lock()

    def add(self, file: Path) -> None:
        with self._changing:
            self._files.add(file)
            self._folders.add(file.parent)

    def add_folder(self, folder: Path) -> None:
        with self._changing:
            self._folders.add(folder)

    def sync(self) -> None:
        # One at a time: a second caller's objects may be among those that the first is still syncing.
        with self._syncing:
            with self._changing:
                files, self._files = self._files, set()
                folders, self._folders = self._folders, set()
            try:
                _sync_all(files)
                _sync_all(folders)
            except BaseException:
                with self._changing:
                    self._files |= files
                    self._folders |= folders
                raise


def _sync_all(paths: set[Path]) -> None:
    if len(paths) < _MANY_FILES:
        for path in paths:
            _sync_if_there(path)
        return
    # In parallel, a journaling file system answers many of them with one write.
    with ThreadPoolExecutor(_SYNC_THREADS) as pool:
        list(pool.map(_sync_if_there, paths))


def _sync_if_there(path: Path) -> None:
    # What somebody deleted in the meantime, such as a whole dataset, must not fail every later sync.
    with suppress(FileNotFoundError):
        sync_path(path)


def _move(source: Path, address: Path) -> None:
    try:
        os.replace(source, address)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        pending = new_pending(address.parent)
        try:
            with open(source, "rb") as reader, open(pending, "xb") as writer:
                shutil.copyfileobj(reader, writer, _CHUNK_SIZE)
            os.replace(pending, address)
        except BaseException:
            pending.unlink(missing_ok=True)
            raise
        source.unlink()
