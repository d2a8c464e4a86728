"""What is looked at in a zip archive of strangers before the library is let at it."""

from __future__ import annotations

import struct
import zipfile
from typing import BinaryIO

from odf_common.errors import MalformedBytesError

METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Ways of packing to take. The library unpacks others in one go: a few hundred bytes of bzip2 may fill the memory."""

_MAX_DIRECTORY_SIZE = 16 << 20  # bytes; a hundred thousand names and more
_END_OF_DIRECTORY = b"PK\5\6"
_END_SIZE = 22
_LONG_END = b"PK\6\6"
_LONG_END_SIZE = 56
_LONG_END_PLACE = b"PK\6\7"
_LONG_END_PLACE_SIZE = 20
_MAX_COMMENT_SIZE = 1 << 16


def check_directory(file: BinaryIO) -> None:
    """MalformedBytesError unless the directory is there and of a sensible size: the library reads all of it at once."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SIZE - _MAX_COMMENT_SIZE))
    tail = file.read()
    file.seek(0)
    place = tail.rfind(_END_OF_DIRECTORY)
    if place < 0 or len(tail) - place < _END_SIZE:
        start = file.read(4)
        file.seek(0)
        what = (
            "the zip archive is cut off: its end" if start.startswith(b"PK") else "this is no zip archive: a directory"
        )
        raise MalformedBytesError(f"{what} is missing ({size} bytes)")
    (directory_size,) = struct.unpack_from("<I", tail, place + 12)
    long_size = _long_directory_size(file, size - len(tail) + place)
    if (directory_size if long_size is None else long_size) > _MAX_DIRECTORY_SIZE:
        raise MalformedBytesError(f"the zip archive's directory is larger than {_MAX_DIRECTORY_SIZE >> 20} MiB")


def _long_directory_size(file: BinaryIO, end: int) -> int | None:
    """What stands before the end for large archives; the library believes it rather than the end itself."""
    start = end - _LONG_END_PLACE_SIZE - _LONG_END_SIZE
    if start < 0:
        return None
    file.seek(start)
    found = file.read(_LONG_END_SIZE + len(_LONG_END_PLACE))
    file.seek(0)
    if not (found.startswith(_LONG_END) and found.endswith(_LONG_END_PLACE)):
        return None
    (directory_size,) = struct.unpack_from("<Q", found, 40)
    return int(directory_size)
