"""Prepare steps: fetched bytes unpacked and converted on their way, with bounds on what comes out."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from odf_common.metadata.sources import CompressionFormat, PrepStep, PrepStepDecompress, PrepStepPipe
from services.poller.errors import PrepareError, StepRefusedError
from services.poller.settings import PollerSettings

_CHUNK_SIZE = 256 << 10
_FREE_SIZE = 16 << 20  # bytes that may come out of an archive of any size
_GZIP = 31  # zlib's word for the gzip format

PIPE_REFUSED = (
    "the prepare step Pipe runs a command on this machine, which is off: whoever runs the poller can allow it with "
    "ODF_POLLER_ALLOW_PIPE=true"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may come out, and how long it may take."""

    max_size: int = 4 << 30
    max_ratio: float = 300.0
    timeout_s: float = 900.0
    allow_pipe: bool = False
    folder: Path | None = None
    """Where files without a name are put; None: where the system puts such files."""

    @classmethod
    def of(cls, settings: PollerSettings, *, folder: Path | None = None) -> Limits:
        """The limits of the settings."""
        return cls(
            max_size=settings.max_size,
            max_ratio=settings.max_ratio,
            timeout_s=settings.prepare_timeout_s,
            allow_pipe=settings.allow_pipe,
            folder=folder,
        )

    def check(self, size: int, *, packed: int) -> None:
        """PrepareError when more has come out than may."""
        if size > self.max_size:
            raise PrepareError(
                f"more than {self.max_size} bytes come out of it (ODF_POLLER_MAX_SIZE): it was not unpacked further"
            )
        if size > _FREE_SIZE and size > packed * self.max_ratio:
            raise PrepareError(
                f"it grows by more than {self.max_ratio:g} times, as bombs do: it was not unpacked further "
                "(ODF_POLLER_MAX_RATIO)"
            )


DEFAULT_LIMITS = Limits()


@contextmanager
def prepared(
    steps: Sequence[PrepStep] | None, file: BinaryIO, *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[BinaryIO]:
    """What comes out of the steps, one after another, to be read once from front to end.

    PrepareError while it is opened or read says what is wrong; StepRefusedError names a step that is not allowed.
    """
    with ExitStack() as until_read:
        for step in steps or ():
            file = until_read.enter_context(_through(step, file, limits))
        yield file


@contextmanager
def _through(step: PrepStep, file: BinaryIO, limits: Limits) -> Iterator[BinaryIO]:
    if isinstance(step, PrepStepPipe):
        if not limits.allow_pipe:
            raise StepRefusedError(PIPE_REFUSED)
        from services.poller.pipe import piped

        with piped(step.command, file, limits) as out:
            yield out
        return
    assert isinstance(step, PrepStepDecompress)
    if step.format is CompressionFormat.GZIP:
        yield stream_of(unpacked_gzip(file, limits))
        return
    from services.poller.unzip import unzipped

    with unzipped(file, step.sub_path, limits) as out:
        yield out


def unpacked_gzip(file: BinaryIO, limits: Limits) -> Iterator[bytes]:
    """The content of a gzip file, of all its members."""
    packed = size = 0
    unpacker = None
    while chunk := file.read(_CHUNK_SIZE):
        packed += len(chunk)
        while chunk:
            if unpacker is None:
                if packed > len(chunk) and not chunk.strip(b"\0"):
                    break  # tapes and disks pad files with zeros
                unpacker = zlib.decompressobj(_GZIP)
            try:
                out = unpacker.decompress(chunk, _CHUNK_SIZE)
            except zlib.error as error:
                raise PrepareError(_gzip_problem(file_start=packed == len(chunk) and not size, error=error)) from error
            size += len(out)
            limits.check(size, packed=packed)
            if out:
                yield out
            chunk = unpacker.unconsumed_tail
            if unpacker.eof:
                chunk = unpacker.unused_data
                unpacker = None
    if unpacker is not None:
        raise PrepareError(f"the gzip file ends in the middle, after {packed} bytes")
    if not packed:
        raise PrepareError("the gzip file is empty")


def _gzip_problem(*, file_start: bool, error: Exception) -> str:
    if file_start and "header" in str(error):
        return f"this is no gzip file: {error}"
    return f"the gzip file is damaged: {error}"


class _Stream(io.RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill as much as the next chunk has."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def stream_of(chunks: Iterator[bytes]) -> BinaryIO:
    """A file, readable once from front to end, of chunks that are made while it is read."""
    return cast(BinaryIO, io.BufferedReader(_Stream(chunks), _CHUNK_SIZE))
