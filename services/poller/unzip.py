"""One file out of a zip archive, read without writing any name of the archive anywhere."""

from __future__ import annotations

import fnmatch
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast

from odf_common.errors import MalformedBytesError
from odf_common.zip_directory import METHODS, check_directory
from services.poller.errors import PrepareError
from services.poller.prepare import Limits, stream_of

_CHUNK_SIZE = 256 << 10
_ENCRYPTED = 1
_SHOWN_NAMES = 10
_FALSE_PATH = re.compile(r"^[/\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)")
_OF_MACS = ("__MACOSX/", ".DS_Store")

# What the library raises for bytes that are not what they claim to be.
_DAMAGES = (zipfile.BadZipFile, EOFError, zlib.error, OSError, struct.error, ValueError)


@contextmanager
def unzipped(file: BinaryIO, sub_path: str | None, limits: Limits) -> Iterator[BinaryIO]:
    """The content of the only file, or of the one that `sub_path` names or matches."""
    with _seekable(file, limits) as whole:
        try:
            check_directory(whole)
            archive = zipfile.ZipFile(whole)
        except MalformedBytesError as error:
            raise PrepareError(str(error)) from error
        except (*_DAMAGES, NotImplementedError) as error:
            raise PrepareError(f"the zip archive is damaged or cut off: {error}") from error
        with archive:
            entry = _chosen(archive.infolist(), sub_path)
            if entry.flag_bits & _ENCRYPTED:
                raise PrepareError(f"{entry.filename!r} in the zip archive is encrypted")
            if entry.compress_type not in METHODS:
                raise PrepareError(
                    f"{entry.filename!r} in the zip archive is packed in a way that is not supported (method "
                    f"{entry.compress_type}): pack it with deflate"
                )
            yield stream_of(_content(archive, entry, limits))


@contextmanager
def _seekable(file: BinaryIO, limits: Limits) -> Iterator[BinaryIO]:
    """An archive has its directory at its end."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile(dir=limits.folder) as copy:
        shutil.copyfileobj(file, copy, _CHUNK_SIZE)
        yield cast(BinaryIO, copy)


def _chosen(entries: list[zipfile.ZipInfo], sub_path: str | None) -> zipfile.ZipInfo:
    for entry in entries:
        if _FALSE_PATH.search(entry.filename):
            raise PrepareError(f"the zip archive has a name that leads out of it: {entry.filename[:100]!r}")
    files = [each for each in entries if not each.is_dir() and not _is_of_mac(each.filename)]
    found = files if sub_path is None else _matching(files, sub_path)
    if len(found) == 1:
        return found[0]
    names = _listed(each.filename for each in (found or files))
    if sub_path is None:
        if not files:
            raise PrepareError("the zip archive has no file")
        raise PrepareError(f"the zip archive has {len(files)} files, name one of them by subPath: {names}")
    if not found:
        raise PrepareError(f"subPath {sub_path!r} matches no file of the zip archive, which has {names or 'none'}")
    raise PrepareError(f"subPath {sub_path!r} matches {len(found)} files of the zip archive, not one: {names}")


def _matching(files: list[zipfile.ZipInfo], sub_path: str) -> list[zipfile.ZipInfo]:
    """By its name, else by the pattern: a name may hold what means something in a pattern."""
    exact = [each for each in files if each.filename == sub_path]
    return exact or [each for each in files if fnmatch.fnmatchcase(each.filename, sub_path)]


def _is_of_mac(name: str) -> bool:
    return name.startswith(_OF_MACS[0]) or name.rpartition("/")[2] == _OF_MACS[1]


def _listed(names: Iterator[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _SHOWN_NAMES} more" if len(found) > _SHOWN_NAMES else ""
    return ", ".join(repr(name[:100]) for name in found[:_SHOWN_NAMES]) + more


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Limits) -> Iterator[bytes]:
    size = 0
    limits.check(entry.file_size, packed=max(entry.compress_size, 1))
    try:
        with archive.open(entry) as content:
            while chunk := _read(content):
                size += len(chunk)
                limits.check(size, packed=max(entry.compress_size, 1))
                yield chunk
    except (NotImplementedError, RuntimeError) as error:
        raise PrepareError(f"{entry.filename!r} in the zip archive cannot be read: {error}") from error
    except _DAMAGES as error:
        raise PrepareError(f"{entry.filename!r} in the zip archive is damaged or cut off: {error}") from error


def _read(content: IO[bytes]) -> bytes:
    return content.read(_CHUNK_SIZE)
