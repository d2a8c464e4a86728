"""The records of payloads: of messages, and of files in the upload area, in parts of bounded size."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from odf_common.errors import StoreUnavailableError
from odf_common.identity.multihash import SHA2_256, Multihash
from odf_common.ingest.media_types import step_for
from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.payload_file import read_payload
from odf_common.ingest.read.records import Reader, Records
from streaming_jobs.ingest.batch_size import pieces
from streaming_jobs.ingest.refusals import PayloadRefusedError

if TYPE_CHECKING:
    from odf_common.catalog.records import SourceSettings
    from odf_common.identity.did import DatasetId
    from odf_common.ingest.source import SourcePlan
    from odf_common.messages.payload import UploadedPayload
    from odf_common.metadata.sources import ReadStep
    from odf_common.uploads import UploadArea

_MAX_PARTS = 1_000
"""Each makes a slice, and one completion has to hold them all, however small batches are."""
_MAX_LETTERS = 100_000
_MAX_LETTERS_SIZE = 64 << 20  # bytes
_MAX_QUERIED_SIZE = 256 << 20
"""Bytes of rows that go through a query at once: Spark takes them in one piece, and so do we."""

_END = object()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Format:
    """How payloads of one media type are read."""

    step: ReadStep
    reader: Reader


class Formats:
    """The formats of one source, made when they are needed first."""

    def __init__(self, plan: SourcePlan) -> None:
        self.plan = plan
        self._known: dict[str, Format] = {}

    def of(self, media_type: str | None) -> Format:
        """UnsupportedMediaTypeError or UnsupportedSourceError if the source cannot take it."""
        step = step_for(media_type, self.plan.source.read)
        if step.kind not in self._known:  # media types may be written in any number of ways
            reader = self.plan.reader if step is self.plan.source.read else self.plan.reader_of(step)
            self._known[step.kind] = Format(step, reader)
        return self._known[step.kind]


def records_of_messages(form: Format, messages: pa.Table, settings: SourceSettings) -> Iterator[Records]:
    """The records of messages that are one payload, with the columns of those before."""
    return _bounded(_records_read(form.reader, messages, settings))


@contextmanager
def opened_upload(
    area: UploadArea,
    dataset_id: DatasetId,
    upload: UploadedPayload,
    form: Format,
    message: pa.Table,
    *,
    max_size: int,
    chunk_size: int,
) -> Iterator[Iterator[Records]]:
    """The records of an upload, read while those before are dealt with.

    When the `with` block ends, its bytes were compared with their hash: until then nothing may be proposed.
    PayloadRefusedError if it is not what the message says.
    """
    path = area.path(dataset_id, upload.name)
    _check_size(path, upload, max_size)
    with ThreadPoolExecutor(2, thread_name_prefix="upload") as pool, path.open("rb") as file:
        found = pool.submit(_hash_of, path)
        try:
            chunk_size = max(chunk_size, upload.size // _MAX_PARTS)
            parts = read_payload(form.reader, form.step, file, message, chunk_size=chunk_size)
            yield _bounded(_ahead(parts, pool))
        except Exception:
            _check_hash(found.result(), upload)  # what was damaged on the way is not the fault of the payload
            raise
        _check_hash(found.result(), upload)


def together(parts: Iterator[Records]) -> Iterator[Records]:
    """All records at once: of a snapshot a query has to see all."""
    some: list[Records] = []
    for records in parts:
        some.append(records)
        if sum(each.rows.nbytes for each in some) > _MAX_QUERIED_SIZE:
            reason = f"a snapshot that goes through a query may have {_MAX_QUERIED_SIZE} bytes of rows, this has more"
            raise PayloadRefusedError(Problem(Code.TOO_LARGE, reason))
    if some:
        yield Records.joined(some)


def _check_size(path: Path, upload: UploadedPayload, max_size: int) -> None:
    if upload.size > max_size:
        reason = f"the payload has {upload.size} bytes, at most {max_size} are taken (ODF_MAX_UPLOAD_SIZE)"
        raise PayloadRefusedError(Problem(Code.TOO_LARGE, reason))
    try:
        status = path.stat()
    except FileNotFoundError as error:
        reason = f"upload {upload.name} is not in the upload area (any more): upload the payload again"
        raise PayloadRefusedError(Problem(Code.UPLOAD_MISSING, reason)) from error
    except OSError as error:
        raise StoreUnavailableError(f"{path}: {error}") from error
    size = status.st_size if stat.S_ISREG(status.st_mode) else "no"
    if size != upload.size:
        reason = f"upload {upload.name} has {size} bytes, its message says {upload.size}: upload the payload again"
        raise PayloadRefusedError(Problem(Code.UPLOAD_DAMAGED, reason))


def _check_hash(found: Multihash, upload: UploadedPayload) -> None:
    if found != upload.hash:
        reason = f"upload {upload.name} has the hash {found}, its message says {upload.hash}: upload the payload again"
        raise PayloadRefusedError(Problem(Code.UPLOAD_DAMAGED, reason))


def _records_read(reader: Reader, messages: pa.Table, settings: SourceSettings) -> Iterator[Records]:
    least = messages.nbytes // _MAX_PARTS
    limits = {"batch_rows": max(settings.batch_rows, least), "batch_bytes": max(settings.batch_bytes, least)}
    for piece in pieces(messages, settings.model_copy(update=limits)):
        records = reader.read(piece)
        yield records
        reader = reader.following(records.rows.schema)


def _hash_of(path: Path) -> Multihash:
    with path.open("rb") as file:
        return Multihash(SHA2_256, hashlib.file_digest(file, "sha256").digest())


def _bounded(parts: Iterator[Records]) -> Iterator[Records]:
    """A payload of which too much cannot be read is something else than it should be."""
    count = size = 0
    for records in parts:
        count += len(records.unreadable)
        size += sum(len(letter.data) for letter in records.unreadable)
        if count > _MAX_LETTERS or size > _MAX_LETTERS_SIZE:
            first = records.unreadable[0]
            reason = (
                f"{count} of the first records cannot be read, such as record {(first.index or 0) + 1}: {first.reason}"
            )
            raise PayloadRefusedError(Problem(Code.INVALID_PAYLOAD, reason))
        yield records


def _ahead(items: Iterator[T], pool: ThreadPoolExecutor) -> Iterator[T]:
    """The same items, the next one of which is being made already."""

    def make() -> T | object:
        return next(items, _END)

    making = pool.submit(make)
    while (item := making.result()) is not _END:
        making = pool.submit(make)
        yield item  # type: ignore[misc]
