"""How files become messages: cut into whole records, or one message that names them in the upload area."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from odf_common.errors import MalformedBytesError, OdfError
from odf_common.ingest.cutting import UncuttableFormatError, cut_counted
from odf_common.messages.payload import (
    CONTENT_TYPE_HEADER,
    EVENT_ID_HEADER,
    EVENT_SOURCE_HEADER,
    MAX_INLINE_SIZE,
    UPLOAD_MEDIA_TYPE,
    UploadedPayload,
)
from odf_common.metadata.sources import (
    MergeStrategyChangelogStream,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStep,
)
from services.cli.producing import Outgoing
from services.cli.reporting import STDIN, source_name

if TYPE_CHECKING:
    from odf_common.identity.did import DatasetId
    from odf_common.metadata.events import AddPushSource
    from odf_common.uploads import Upload, UploadArea

OnRead = Callable[[int], None]
"""Is told how many bytes were read."""

EVENT_SOURCE = "odf-cli"
"""Whose event ids those of `odf ingest --event-id` are."""

MAX_EVENT_ID = 255
"""Characters of an event id, as many as a gateway takes."""

_CHUNK_SIZE = 1 << 20
_IN_ORDER = (MergeStrategySnapshot, MergeStrategyUpsertStream, MergeStrategyChangelogStream)


class PayloadTooLargeError(OdfError):
    """A payload is larger than the upload area takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payloads:
    """Turns files into messages for one source."""

    source: AddPushSource
    dataset_id: DatasetId
    area: UploadArea
    max_size: int
    media_type: str | None = None
    """Of all files; each tells by its name where none is given."""
    timestamp_ms: int | None = None
    event_id: str | None = None
    on_read: OnRead = lambda size: None

    def messages(self, files: Sequence[Path]) -> Iterator[Outgoing]:
        """The messages of the files in their order."""
        for path in files:
            _check_readable(path)
        for path in files:
            media_type = self._media_type(path)
            with opened(path) as file:
                try:
                    yield from self._of_file(path, file, media_type)
                except MalformedBytesError as error:
                    raise MalformedBytesError(f"{source_name(path)}: {error}") from error

    def forget(self, messages: Iterable[Outgoing]) -> None:
        """Remove the uploads of messages that were never sent."""
        for message in messages:
            if message.headers.get(CONTENT_TYPE_HEADER) == UPLOAD_MEDIA_TYPE:
                self.area.remove(self.dataset_id, UploadedPayload.from_json(message.value).name)

    def _of_file(self, path: Path, file: BinaryIO, media_type: str | None) -> Iterator[Outgoing]:
        step = self.step(media_type)
        if self._is_uploaded(path, step):
            yield self._reference(self._uploaded(path, file), media_type)
        elif self._is_whole:
            data = b"".join(self._chunks(file))
            if data or isinstance(self.source.merge, MergeStrategySnapshot):
                yield self._message(data, media_type)
        else:
            pieces = cut_counted(step, self._chunks(file))
            # Of a file, nothing is sent before all of it was looked at.
            for piece in pieces if path == STDIN else list(pieces):
                yield self._message(piece.data, media_type, records=piece.records)

    def step(self, media_type: str | None) -> ReadStep:
        """How a payload of this media type is read."""
        from odf_common.ingest.media_types import step_for

        return self.source.read if media_type is None else step_for(media_type, self.source.read)

    def _media_type(self, path: Path) -> str | None:
        """The media type, where it is not that of the source's own format."""
        found = self.media_type or media_type_of(path)
        return None if found is None or self.step(found) == self.source.read else found

    @property
    def _is_whole(self) -> bool:
        """Whether a payload must stay in one piece: what is one batch, and what has one id."""
        return isinstance(self.source.merge, MergeStrategySnapshot) or self.event_id is not None

    def _is_uploaded(self, path: Path, step: ReadStep) -> bool:
        if not _is_cuttable(step):
            return True
        if path == STDIN or not path.is_file():
            return self._is_whole
        return path.stat().st_size > MAX_INLINE_SIZE

    def _uploaded(self, path: Path, file: BinaryIO) -> Upload:
        with self.area.writer(self.dataset_id) as writer:
            for chunk in self._chunks(file):
                writer.write(chunk)
                if writer.size > self.max_size:
                    raise PayloadTooLargeError(
                        f"{path}: a payload may have {self.max_size} bytes (ODF_MAX_UPLOAD_SIZE), this has more"
                    )
            return writer.finish()

    def _reference(self, upload: Upload, media_type: str | None) -> Outgoing:
        payload = UploadedPayload(name=upload.name, hash=upload.hash, size=upload.size, media_type=media_type)
        return self._message(payload.to_json(), UPLOAD_MEDIA_TYPE, size=upload.size)

    def _message(
        self, value: bytes, media_type: str | None, *, records: int | None = None, size: int | None = None
    ) -> Outgoing:
        headers = {} if media_type is None else {CONTENT_TYPE_HEADER: media_type}
        if self.event_id is not None:
            headers |= {EVENT_ID_HEADER: self.event_id, EVENT_SOURCE_HEADER: EVENT_SOURCE}
        return Outgoing(
            value=value,
            headers=headers,
            records=records,
            size=size,
            timestamp_ms=self.timestamp_ms,
            # What comes later counts more: only one partition keeps that order.
            partition=0 if isinstance(self.source.merge, _IN_ORDER) else None,
        )

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        while chunk := file.read(_CHUNK_SIZE):
            self.on_read(len(chunk))
            yield chunk


def is_event_id(text: str) -> bool:
    """Whether a text can be an event id."""
    return 1 <= len(text) <= MAX_EVENT_ID and text.isprintable() and text == text.strip()


def media_type_of(path: Path) -> str | None:
    """What the name of a file says of its format; None if nothing."""
    from odf_common.ingest.media_types import media_type_of_file

    return None if path == STDIN else media_type_of_file(path.name)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, or of standard input for `-`."""
    if path == STDIN:
        yield sys.stdin.buffer
        return
    with path.open("rb") as file:
        yield file


def _check_readable(path: Path) -> None:
    """OSError, before anything of other files is sent, for a file that is not there or may not be read."""
    if path != STDIN and (path.is_file() or path.is_dir() or not path.exists()):
        with path.open("rb"):
            pass


def _is_cuttable(step: ReadStep) -> bool:
    try:
        cut_counted(step, ())
    except UncuttableFormatError:
        return False
    return True
