"""One dataset in ODF layout, and the root below which many of them lie; wherever that is."""

# ruff: noqa: D102 (the methods are described by the port, DatasetRoot)

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from odf_common.errors import NotFoundError
from odf_common.storage.files import translated
from odf_common.storage.folder_objects import FolderObjects
from odf_common.storage.folder_refs import FolderRefs
from odf_common.storage.ports import ObjectStore, RefFiles

if TYPE_CHECKING:
    from odf_common.storage.bucket import Bucket


@dataclass(frozen=True, slots=True)
class DatasetFolder:
    """Everything that makes up one dataset: a peer can copy it and needs nothing else."""

    objects: ObjectStore
    refs: RefFiles


class DatasetRoot(Protocol):
    """A place below which every folder is a dataset."""

    def names(self) -> Iterator[str]:
        """The folders that exist, sorted."""
        ...

    def folder(self, name: str) -> DatasetFolder:
        """One of the folders, whether or not it exists yet. `name` is one path segment, known to be harmless."""
        ...

    def remove(self, name: str) -> None:
        """Delete a folder and all it holds; it is fine if there is none."""
        ...

    def remove_left_overs(self, name: str) -> None:
        """Delete what writers that died left in the making in a folder."""
        ...


class LocalRoot:
    """A DatasetRoot on the local file system."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"

    def names(self) -> Iterator[str]:
        with suppress(NotFoundError), translated(self._path):
            yield from sorted(entry.name for entry in os.scandir(self._path) if entry.is_dir())

    def folder(self, name: str) -> DatasetFolder:
        return local_folder(self._path / name)

    def remove(self, name: str) -> None:
        with suppress(NotFoundError), translated(self._path / name):
            shutil.rmtree(self._path / name)

    def remove_left_overs(self, name: str) -> None:
        FolderObjects(self._path / name).remove_left_overs()
        FolderRefs(self._path / name).remove_left_overs()


class BucketRoot:
    """A DatasetRoot below a prefix of an object store."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._bucket!r})"

    def names(self) -> Iterator[str]:
        yield from sorted(self._bucket.folders())

    def folder(self, name: str) -> DatasetFolder:
        return bucket_folder(self._bucket.under(name))

    def remove(self, name: str) -> None:
        folder = self._bucket.under(name)
        for key in folder.all_keys():
            folder.remove(key)

    def remove_left_overs(self, name: str) -> None:
        """Nothing to do: an object store shows no unfinished values."""


def local_folder(path: Path) -> DatasetFolder:
    """A dataset in a local folder."""
    return DatasetFolder(FolderObjects(path), FolderRefs(path))


def bucket_folder(bucket: Bucket) -> DatasetFolder:
    """A dataset below a prefix of an object store."""
    from odf_common.storage.bucket_objects import BucketObjects
    from odf_common.storage.bucket_refs import BucketRefs

    return DatasetFolder(BucketObjects(bucket), BucketRefs(bucket))
