"""What `odf try` works on: the source of a manifest, and files as the source would get them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import typer

from odf_common.chain.state import ChainState, next_block
from odf_common.errors import MalformedBytesError, OdfError
from odf_common.identity.multihash import sha3_256
from odf_common.ingest.messages import Problem
from odf_common.ingest.trial import Taken, Trial, source_of
from odf_common.metadata.events import AddPushSource, MetadataEvent, SetPollingSource
from odf_common.metadata.sources import CompressionFormat, PrepStep, PrepStepDecompress
from odf_common.timestamp import Timestamp
from services.cli.opening import parsed_time
from services.cli.payloads import media_type_of, opened
from services.cli.reporting import source_name

if TYPE_CHECKING:
    from odf_common.ingest.batch import Preprocess
    from odf_common.metadata.fragments import DatasetVocabulary
    from odf_common.metadata.transforms import Transform

_MAGIC = {CompressionFormat.GZIP: b"\x1f\x8b", CompressionFormat.ZIP: b"PK"}
_MAX_IN_MEMORY = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Tried:
    """A source of a manifest, ready to be tried."""

    trial: Trial
    vocabulary: DatasetVocabulary
    prepare: tuple[PrepStep, ...]
    is_polling: bool

    def take(
        self, path: Path, event_time: Timestamp | None, system_time: Timestamp | None, *, media_type: str | None
    ) -> Taken:
        """Ingest a file; an archive that cannot be unpacked is refused as a whole."""
        now = system_time or Timestamp.now()
        try:
            with _payload_of(path, self.prepare) as file:
                return self.trial.take(
                    file,
                    event_time=event_time or now,
                    system_time=now,
                    media_type=media_type or self._media_type_of(path),
                )
        except OdfError as error:
            taken = Taken(watermark=self.trial.watermark)
            taken.refuse(Problem(error.code, str(error)))
            return taken

    def _media_type_of(self, path: Path) -> str | None:
        """What a file's name says of its format; what is fetched has the format of the source, however it is called."""
        return None if self.is_polling else media_type_of(path)


def tried_source(manifest: Path, name: str | None, stack: ExitStack) -> Tried:
    """The source of a DatasetSnapshot; Spark is started if it has queries, and stopped with the stack."""
    chain = _chain(_events(manifest))
    source = source_of(chain, name)
    polling = chain.polling_source
    try:
        preprocess = _preprocess(source, stack)
        trial = Trial(chain, source, preprocess=preprocess)
    except OdfError as error:
        kind = "polling source" if polling is not None else f"push source {source.source_name!r}"
        raise type(error)(f"{source_name(manifest)}: {kind}: {error}") from error
    return Tried(trial, chain.vocabulary, (polling.prepare or ()) if polling else (), polling is not None)


def times_of(given: list[str] | None, count: int, *, hint: str) -> Sequence[Timestamp | None]:
    """The time of each file, given once or for each; None where there is none."""
    times = [parsed_time(text, hint=hint) for text in given or ()]
    if len(times) <= 1:
        return [times[0] if times else None] * count
    if len(times) != count:
        raise typer.BadParameter(f"give it once, or once for each of the {count} files", param_hint=hint)
    return times


@contextmanager
def _payload_of(path: Path, prepare: Sequence[PrepStep]) -> Iterator[BinaryIO]:
    """The bytes that are read, in a file that can be read twice: unpacked where the file still is packed."""
    with ExitStack() as stack:
        file = stack.enter_context(opened(path))
        if not file.seekable():
            file = stack.enter_context(_spooled(file))
        for step in prepare:
            if isinstance(step, PrepStepDecompress) and not _is_packed(file, step.format):
                continue
            file = stack.enter_context(_prepared(step, file))
        yield file


@contextmanager
def _prepared(step: PrepStep, file: BinaryIO) -> Iterator[BinaryIO]:
    from services.poller.prepare import Limits, prepared
    from services.poller.settings import PollerSettings

    with prepared([step], file, limits=Limits.of(PollerSettings())) as out, _spooled(out) as spooled:
        yield spooled


@contextmanager
def _spooled(file: BinaryIO) -> Iterator[BinaryIO]:
    with tempfile.SpooledTemporaryFile(_MAX_IN_MEMORY) as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield cast(BinaryIO, copy)


def _is_packed(file: BinaryIO, packing: CompressionFormat) -> bool:
    start = file.read(2)
    file.seek(0)
    return start == _MAGIC[packing]


def _events(manifest: Path) -> Sequence[MetadataEvent]:
    from services.cli.add import snapshots_in

    snapshots = list(snapshots_in(manifest))
    if len(snapshots) != 1:
        raise MalformedBytesError(f"{source_name(manifest)} has {len(snapshots)} DatasetSnapshots: try one at a time")
    return snapshots[0].metadata


def _chain(events: Sequence[MetadataEvent]) -> ChainState:
    """What the chain of the new dataset would say, as far as ingestion asks for it."""
    chain = ChainState()
    for event in events:
        block = next_block(chain, _normalized(event), system_time=Timestamp.now())
        chain = chain.followed_by(block, sha3_256(str(block.sequence_number).encode()))
    return chain


def _normalized(event: MetadataEvent) -> MetadataEvent:
    if isinstance(event, AddPushSource | SetPollingSource) and event.preprocess is not None:
        from odf_common.ingest.queries import normalized

        return event.model_copy(update={"preprocess": normalized(event.preprocess)})
    return event


def _preprocess(source: AddPushSource, stack: ExitStack) -> Preprocess | None:
    """The queries of a source, once it is known that they may run."""
    if source.preprocess is None:
        return None
    from odf_common.ingest.queries import check_preprocess

    check_preprocess(source.preprocess)
    return _in_spark(source.preprocess, stack)


def _in_spark(transform: Transform, stack: ExitStack) -> Preprocess:
    from services.cli.without_pandas import let_pandas_in
    from streaming_jobs.ingest.preprocess import preprocess_of
    from streaming_jobs.settings import SparkSettings
    from streaming_jobs.spark_session import start_spark

    def tell(line: str) -> None:
        typer.echo(f"note: {line}", err=True)

    let_pandas_in()
    spark = start_spark(SparkSettings(), app_name="odf-try", on_progress=tell)
    stack.callback(spark.stop)
    return preprocess_of(spark, transform)
