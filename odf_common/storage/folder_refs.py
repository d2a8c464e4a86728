"""Refs as files of a local folder, for datasets that no catalog keeps."""

# ruff: noqa: D102 (the methods are described by the port, RefFiles)

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from odf_common.errors import NotFoundError, RefCASFailedError
from odf_common.identity.multihash import Multihash
from odf_common.storage.files import make_folder, read_bounded, remove_left_overs, replace_file, sync_path, translated
from odf_common.storage.layout import (
    MAX_REF_SIZE,
    REFS_FOLDER,
    check_ref_fits,
    check_ref_name,
    is_ref_name,
    parse_ref_content,
    ref_content,
)


class FolderRefs:
    """The RefFiles of a dataset's folder.

    Writers exclude each other by a lock on the refs folder itself, so that no lock file lies about; the file system
    must know `flock` on folders, as local ones do. Readers take no lock: files are replaced whole.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / REFS_FOLDER

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._folder.parent)!r})"

    def get(self, name: str) -> Multihash | None:
        check_ref_name(name)
        path = self._folder / name
        with translated(path):
            if path.is_dir():
                return None
            try:
                content = read_bounded(path, MAX_REF_SIZE, place=f"{REFS_FOLDER}/{name}")
            except (FileNotFoundError, NotADirectoryError):
                return None
        return parse_ref_content(name, content)

    def compare_and_set(self, name: str, *, expected: Multihash | None, new: Multihash) -> None:
        check_ref_name(name)
        with self._locked():
            actual = self.get(name)
            if actual != expected:
                raise RefCASFailedError(name, expected=expected, actual=actual)
            if actual is None:
                check_ref_fits(name, self.names())
            self._write(name, new)

    def names(self) -> Iterator[str]:
        with translated(self._folder):
            for folder, _, files in os.walk(self._folder):
                below = Path(folder).relative_to(self._folder)
                for name in files:
                    if is_ref_name(ref := (below / name).as_posix()):
                        yield ref

    def replace(self, name: str, new: Multihash) -> None:
        check_ref_name(name)
        with self._locked():
            self._write(name, new)

    def remove(self, name: str) -> None:
        check_ref_name(name)
        path = self._folder / name
        with suppress(NotFoundError), translated(path):
            path.unlink()
            sync_path(path.parent)

    def remove_left_overs(self) -> None:
        """Delete what writers that died left in the making."""
        with translated(self._folder):
            for folder, _, _ in os.walk(self._folder):
                remove_left_overs(Path(folder))

    def _write(self, name: str, new: Multihash) -> None:
        path = self._folder / name
        with translated(path):
            _make_durable_folder(path.parent)
            replace_file(path, ref_content(new), durable=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with translated(self._folder):
            _make_durable_folder(self._folder)
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)


def _make_durable_folder(folder: Path) -> None:
    for changed in make_folder(folder):
        sync_path(changed)
