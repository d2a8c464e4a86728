"""One dataset's batches, in order: raw messages → rows → a durable slice → a completion.

All sources of a dataset share a writer, as each record's offset follows from those before it. It stages a batch while
the ones before are still being committed, so it keeps its own account of where the chain will be; when a completion is
rejected that account is worthless, and the writer is thrown away for a new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from odf_common.crash_points import crash_point
from odf_common.data.slice_writer import SliceWriter
from odf_common.errors import OdfError
from odf_common.ingest.batch import Batch, make_batch
from odf_common.ingest.messages import Code, Problem, unreadable
from odf_common.messages.completion import Completion
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData
from odf_common.staging import staged_slice, staging_folder
from odf_common.storage.files import sync_path
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest import metrics
from streaming_jobs.ingest.batch_size import pieces
from streaming_jobs.ingest.preprocess import PreprocessError

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_common.chain.state import ChainState
    from odf_common.metadata.fragments import DataSlice
    from streaming_jobs.ingest.key_index import KeyIndexes
    from streaming_jobs.ingest.messenger import Messenger
    from streaming_jobs.ingest.source import Source

_log = structlog.get_logger(__name__)


class AnotherTopicError(OdfError):
    """A source's topic is not the one any more that its positions are of."""


class BatchWriter:
    """Stages and proposes the batches of one dataset. Used by one thread."""

    def __init__(
        self,
        chain: ChainState,
        sources: Mapping[str, Source],
        *,
        staging: Path,
        messenger: Messenger,
        indexes: KeyIndexes,
        topic_id_of: Callable[[str], str],
        is_closed: Callable[[], bool] = lambda: False,
    ) -> None:
        assert chain.dataset_id is not None
        self._dataset_id = chain.dataset_id
        self._next_offset = chain.next_offset
        self._system_time = chain.system_time
        self._sources = dict(sources)
        self._positions: dict[str, Mapping[int, int]] = {
            name: source.read_before.next for name, source in sources.items() if source.read_before
        }
        self._staging = staging
        self._messenger = messenger
        self._indexes = indexes
        self._topic_id_of = topic_id_of
        self._is_closed = is_closed
        staging_folder(staging, self._dataset_id).mkdir(parents=True, exist_ok=True)

    def write(self, source_name: str, messages: pa.Table) -> Iterator[Completion]:
        """Stage and propose messages, in as many batches as the source's limits ask for.

        Yields each proposal just before it is sent, so that whoever listens for its answer knows it by then.
        """
        source = self._sources[source_name]
        self._check_topic(source)
        for piece in pieces(messages, source.binding.settings):
            yield from self._write_readable(source_name, piece)

    def committed(self, next_offset: int) -> None:
        """Take note that everything before an offset is in the chain."""
        self._indexes.committed(next_offset)

    def close(self) -> None:
        """Let go of the files."""
        self._indexes.close()

    def _check_topic(self, source: Source) -> None:
        """Spark goes on in another topic of the same name without a word; ids are asked for after it has read.

        If the id is the old one now, then the messages are of the old topic, as no id ever comes back.
        """
        found = self._topic_id_of(source.binding.topic)
        if found != source.topic_id:
            raise AnotherTopicError(
                f"topic {source.binding.topic} was created again: it has the id {found}, not {source.topic_id}; "
                "what was read from it is dropped"
            )

    def _write_readable(self, source_name: str, messages: pa.Table) -> Iterator[Completion]:
        """Where the preprocess query fails on the messages, find out on which: the others go through."""
        try:
            yield from self._write(source_name, messages)
        except PreprocessError as error:
            if messages.num_rows == 1:
                yield from self._write(source_name, messages, refused=str(error))
                return
            half = messages.num_rows // 2
            yield from self._write_readable(source_name, messages.slice(0, half))
            yield from self._write_readable(source_name, messages.slice(half))

    def _write(self, source_name: str, messages: pa.Table, *, refused: str | None = None) -> Iterator[Completion]:
        started = time.perf_counter()
        source = self._sources[source_name]
        system_time = self._next_system_time()
        batch = self._batch(source, messages, system_time, refused)
        if batch.unreadable:
            crash_point("job.before-dead-letters")
            self._messenger.bury(self._dataset_id, source, batch.unreadable, system_time, is_closed=self._is_closed)
            crash_point("job.after-dead-letters")
        staged = self._stage(batch, source)
        covered = self._covered(source, messages, batch)
        completion = Completion(
            id=uuid4().hex,
            dataset_id=self._dataset_id,
            system_time=system_time,
            set_data_schema=batch.set_data_schema,
            add_data=AddData(
                prev_offset=self._next_offset - 1 if self._next_offset else None,
                new_data=staged,
                new_watermark=source.watermark(batch.max_event_time),
                new_source_state=covered.to_state(source.name),
            ),
        )
        yield completion
        self._messenger.propose(completion)
        crash_point("job.after-completion")
        self._positions[source.name] = covered.next
        self._system_time = system_time
        self._take_into_account(batch, staged)
        _count(source, covered, time.perf_counter() - started)

    def _batch(self, source: Source, messages: pa.Table, system_time: Timestamp, refused: str | None) -> Batch:
        if refused is not None:
            return _buried(messages, refused)
        return make_batch(
            source.plan,
            messages,
            next_offset=self._next_offset,
            system_time=system_time,
            keys=self._indexes.for_source(source.plan),
            preprocess=source.preprocess,
        )

    def _next_system_time(self) -> Timestamp:
        """Now in milliseconds, but not before the block before, should the clock have gone back."""
        now = Timestamp.now().truncated_to_ms()
        if self._system_time is None or now >= self._system_time:
            return now
        last = self._system_time.truncated_to_ms()
        return last if last == self._system_time else last.plus_seconds(0.001)

    def _stage(self, batch: Batch, source: Source) -> DataSlice | None:
        """Write the rows, durably, to where the committer looks for them."""
        if batch.rows is None:
            return None
        crash_point("job.before-slice")
        folder = staging_folder(self._staging, self._dataset_id)
        part = folder / f".{uuid4().hex}.part"
        try:
            with SliceWriter(part, batch.rows.schema, vocabulary=source.vocabulary) as writer:
                for rows in batch.rows.combine_chunks().to_batches():
                    writer.write(rows)
            staged = writer.close().to_data_slice()
            sync_path(part)
            part.replace(staged_slice(self._staging, self._dataset_id, staged.physical_hash))
            sync_path(folder)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        crash_point("job.after-slice")
        return staged

    def _covered(self, source: Source, messages: pa.Table, batch: Batch) -> KafkaOffsets:
        start = self._positions.get(source.name, {})
        return KafkaOffsets(
            topic=source.binding.topic,
            topic_id=source.topic_id,
            start=start,
            next=dict(start) | _ends(messages),
            messages=batch.messages,
            records=batch.records,
            duplicates=batch.duplicates,
            dead_letters=len(batch.unreadable),
        )

    def _take_into_account(self, batch: Batch, staged: DataSlice | None) -> None:
        if staged is not None:
            assert batch.rows is not None
            self._next_offset = staged.offset_interval.end + 1
            self._indexes.propose(batch.rows, staged)
        if batch.set_data_schema is not None:
            assert batch.data_schema is not None
            for name, source in self._sources.items():
                self._sources[name] = source.with_schema(batch.data_schema)


def _ends(messages: pa.Table) -> dict[int, int]:
    """Partition → the position behind its last message."""
    last = messages.group_by("partition").aggregate([("offset", "max")])
    return {
        partition: offset + 1
        for partition, offset in zip(last["partition"].to_pylist(), last["offset_max"].to_pylist(), strict=True)
    }


def _buried(messages: pa.Table, reason: str) -> Batch:
    """The batch of a single message that the source's query cannot take."""
    value = messages["value"][0].as_py() or b""
    letter = unreadable(messages, 0, Problem(Code.PREPROCESS_FAILED, reason), index=None, data=value)
    return Batch(
        rows=None,
        set_data_schema=None,
        data_schema=None,
        messages=1,
        records_read=1,
        records=1,
        duplicates=0,
        unreadable=[letter],
        max_event_time=None,
    )


def _count(source: Source, covered: KafkaOffsets, seconds: float) -> None:
    labels = (source.dataset, source.name)
    rows = covered.records - covered.duplicates - covered.dead_letters
    metrics.MESSAGES.labels(*labels).inc(covered.messages)
    metrics.RECORDS.labels(*labels).inc(covered.records)
    metrics.ROWS.labels(*labels).inc(rows)
    metrics.DUPLICATES.labels(*labels).inc(covered.duplicates)
    metrics.DEAD_LETTERS.labels(*labels).inc(covered.dead_letters)
    metrics.BATCH_SECONDS.labels(*labels).observe(seconds)
    _log.debug("batch proposed", dataset=source.dataset, source=source.name, rows=rows, seconds=round(seconds, 4))
