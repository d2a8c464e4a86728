"""Copying what comes into a file, with an eye on what it is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import BinaryIO

from odf_common.identity.multihash import SHA2_256, Multihash
from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import PrepStep, PrepStepPipe
from services.poller.errors import FetchDamagedError
from services.poller.fetched import CONTENT_HASH, FetchJob

CHUNK_SIZE = 1 << 20

_LOOKED_AT = 1_024
_HTML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body|script|title|meta)\b", re.IGNORECASE)


def copied(chunks: Iterable[bytes], job: FetchJob) -> tuple[BinaryIO, Multihash]:
    """A file with these bytes, at its beginning, and their hash."""
    file = job.file()
    hasher = hashlib.sha256()
    size = 0
    for chunk in chunks:
        job.check_time()
        size += len(chunk)
        job.check_size(size)
        hasher.update(chunk)
        file.write(chunk)
    file.seek(0)
    return file, Multihash(SHA2_256, hasher.digest())  # type: ignore[return-value]


def content_state(found: Multihash) -> FetchedState:
    """The state of a source that says nothing about itself."""
    return FetchedState(kind=CONTENT_HASH, value=str(found))


def refuse_html(file: BinaryIO, prepare: Iterable[PrepStep]) -> None:
    """FetchDamagedError for a page made for people, which is what servers like to send in place of an error.

    A command may know how to read it.
    """
    if any(isinstance(step, PrepStepPipe) for step in prepare):
        return
    start = file.read(_LOOKED_AT)
    file.seek(0)
    if _HTML.match(start) is not None:
        text = re.sub(r"\s+", " ", start.decode(errors="replace")).strip()
        raise FetchDamagedError(f"what came is an HTML page, not data: {text[:120]!r}")
