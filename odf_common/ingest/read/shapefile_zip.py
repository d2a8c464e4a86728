"""Shapefiles in zip archives whose content nobody vouches for."""

from __future__ import annotations

import fnmatch
import io
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from odf_common.errors import MalformedBytesError
from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read.records import InvalidPayloadError
from odf_common.zip_directory import METHODS, check_directory

MAX_UNPACKED = 2 << 30
"""Bytes that the parts of a shapefile may have together."""

_MAX_MEMBERS = 10_000
_IN_MEMORY = 32 << 20  # bytes of each part; what is more goes to a file without a name
_CHUNK = 1 << 20

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, KeyError, OSError)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a shapefile consists of, as far as it is read."""

    name: str
    shapes: BinaryIO
    attributes: BinaryIO
    encoding: str


@contextmanager
def shapefile_parts(file: BinaryIO, sub_path: str | None, *, max_size: int | None = None) -> Iterator[Parts]:
    """The parts of the shapefile that `sub_path`, a pattern of names, picks. Raises InvalidPayloadError.

    Nothing is ever written under a name of the archive.
    """
    with ExitStack() as stack:
        try:
            check_directory(file)
            archive = stack.enter_context(zipfile.ZipFile(file))
            names = _checked_names(archive)
            chosen = _chosen(names, sub_path)
            left = max_size or MAX_UNPACKED
            opened = {}
            for suffix in (".shp", ".dbf", ".cpg"):
                name = _sibling(names, chosen, suffix)
                if name is None:
                    continue
                opened[suffix], size = _unpacked(archive, name, left, stack)
                left -= size
        except InvalidPayloadError:
            raise
        except MalformedBytesError as error:
            raise invalid(str(error)) from error
        except _BROKEN as error:
            raise invalid(f"the zip archive is damaged or cut off: {error}") from error
        if ".dbf" not in opened:
            raise invalid(f"the zip archive has {chosen!r} without its .dbf: put both into it")
        encoding = opened[".cpg"].read(64) if ".cpg" in opened else b"utf-8"
        yield Parts(chosen, opened[".shp"], opened[".dbf"], _encoding(encoding))


def invalid(reason: str) -> InvalidPayloadError:
    """The error for a payload that is no shapefile."""
    return InvalidPayloadError(Problem(Code.INVALID_PAYLOAD, reason))


def _checked_names(archive: zipfile.ZipFile) -> list[str]:
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    if len(names) > _MAX_MEMBERS:
        raise invalid(f"the zip archive holds {len(names)} files, at most {_MAX_MEMBERS} are looked at")
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
            raise invalid(f"the zip archive has a file with the path {name!r}, which leads out of it: pack it anew")
    return [name for name in names if not name.startswith("__MACOSX/")]


def _chosen(names: list[str], sub_path: str | None) -> str:
    shapes = [name for name in names if name.lower().endswith(".shp")]
    found = [name for name in shapes if sub_path is None or fnmatch.fnmatchcase(name, sub_path)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(sorted(shapes)[:5]) + (", …" if len(shapes) > 5 else "")
    if not shapes:
        held = ", ".join(sorted(names)[:5]) or "nothing"
        raise invalid(f"the zip archive has no .shp file, it holds {held}: put .shp, .shx and .dbf into it")
    if not found:
        raise invalid(f"subPath {sub_path!r} picks no .shp file of the zip archive, which has {listed}")
    raise invalid(f"the zip archive has several .shp files: {listed}; let subPath of the read step pick one")


def _sibling(names: list[str], shapes: str, suffix: str) -> str | None:
    wanted = shapes[: -len(".shp")].lower() + suffix
    return next((name for name in names if name.lower() == wanted), None)


def _unpacked(archive: zipfile.ZipFile, name: str, limit: int, stack: ExitStack) -> tuple[BinaryIO, int]:
    """A copy in which one can seek; in memory if it is small."""
    entry = archive.getinfo(name)
    if entry.compress_type not in METHODS:
        raise invalid(f"{name!r} is packed in a way that is not supported: pack it with deflate")
    size = entry.file_size
    target: BinaryIO = io.BytesIO()
    if size > _IN_MEMORY:
        target = cast(BinaryIO, stack.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115  # the stack closes it
    copied = 0
    with archive.open(name) as member:
        while chunk := member.read(_CHUNK):
            copied += len(chunk)
            if copied > limit:
                raise invalid(
                    f"{name!r} unpacks to more than the {limit} bytes that are left for it: is it a zip bomb?"
                )
            target.write(chunk)
    target.seek(0)
    return target, copied


def _encoding(text: bytes) -> str:
    """What a .cpg file names: `UTF-8`, `ISO-8859-1`, `1252`, `ANSI 1252`."""
    name = text.decode("ascii", "replace").strip().lower().removeprefix("ansi ")
    candidates = {"65001": ["utf-8"]}.get(name, [name, f"cp{name}", f"iso{name}"])
    for candidate in candidates:
        try:
            "".encode(candidate)
        except (LookupError, UnicodeError, ValueError):
            continue
        return candidate
    raise invalid(f"the .cpg file names the encoding {name!r}, which is not known")
