"""One dataset's batches, in order: raw messages → rows → a durable slice → a completion.

All sources of a dataset share a writer, as each record's offset follows from those before it. It stages a batch while
the ones before are still being committed, so it keeps its own account of where the chain will be; when a completion is
rejected that account is worthless, and the writer is thrown away for a new one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from odf_common.crash_points import crash_point
from odf_common.data.slice_writer import SliceWriter
from odf_common.ingest.batch import Batch, make_batch
from odf_common.messages.completion import Completion
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData
from odf_common.staging import staged_slice, staging_folder
from odf_common.storage.files import sync_folder
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest import metrics

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_common.chain.state import ChainState
    from odf_common.data.slices import Slice
    from odf_common.identity.did import DatasetId
    from streaming_jobs.ingest.key_index import KeyIndexes
    from streaming_jobs.ingest.messenger import Messenger
    from streaming_jobs.ingest.source import Source

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Progress:
    """Where the chain will be when everything that was proposed is committed."""

    dataset_id: DatasetId
    next_offset: int
    system_time: Timestamp | None
    positions: dict[str, Mapping[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, chain: ChainState, sources: Mapping[str, Source]) -> Progress:
        """The account at the beginning: the chain as it is."""
        assert chain.dataset_id is not None
        positions = {name: source.read_before.next for name, source in sources.items() if source.read_before}
        return cls(chain.dataset_id, chain.next_offset, chain.system_time, positions)


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
    ) -> None:
        self._progress = Progress.of(chain, sources)
        self._sources = dict(sources)
        self._schema = next((source.plan.data_schema for source in sources.values()), None)
        self._staging = staging
        self._messenger = messenger
        self._indexes = indexes
        staging_folder(staging, self._progress.dataset_id).mkdir(parents=True, exist_ok=True)

    def write(self, source_name: str, messages: pa.Table) -> Completion | None:
        """Stage and propose the messages as one batch; returns the completion that was sent, None if all was known."""
        started = time.perf_counter()
        source = self._sources[source_name]
        covered = self._covered(source, messages)
        system_time = self._next_system_time()
        batch = make_batch(
            source.plan,
            messages,
            next_offset=self._progress.next_offset,
            system_time=system_time,
            keys=self._indexes.for_source(source.plan),
            preprocess=source.preprocess,
        )
        self._bury(source, batch, system_time)
        staged = self._stage(batch, source)
        completion = self._completion(source, batch, staged, covered, system_time)
        self._messenger.propose(completion)
        crash_point("job.after-completion")
        self._proposed(source, batch, completion)
        _count(source, batch, time.perf_counter() - started)
        return completion

    def _covered(self, source: Source, messages: pa.Table) -> KafkaOffsets:
        start = self._progress.positions.get(source.name, {})
        return KafkaOffsets(
            topic=source.binding.topic, topic_id=source.topic_id, start=start, next=dict(start) | _ends(messages)
        )

    def _next_system_time(self) -> Timestamp:
        """Now, or the time of the batch before if the clock went back."""
        now = Timestamp.now().truncated_to_ms()
        last = self._progress.system_time
        return now if last is None or now >= last else _next_ms(last)

    def _bury(self, source: Source, batch: Batch, time_found: Timestamp) -> None:
        if not batch.unreadable:
            return
        crash_point("job.before-dead-letters")
        self._messenger.bury(self._progress.dataset_id, source, batch.unreadable, time_found)
        crash_point("job.after-dead-letters")

    def _stage(self, batch: Batch, source: Source) -> Slice | None:
        if batch.rows is None or not batch.rows.num_rows:
            return None
        crash_point("job.before-slice")
        folder = staging_folder(self._staging, self._progress.dataset_id)
        part = folder / f".{uuid4().hex}.part"
        try:
            with SliceWriter(part, batch.rows.schema, vocabulary=source.plan.vocabulary) as writer:
                for rows in batch.rows.combine_chunks().to_batches():
                    writer.write(rows)
            staged = writer.close()
            _make_durable(part)
            path = staged_slice(self._staging, self._progress.dataset_id, staged.physical_hash)
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        sync_folder(folder)
        crash_point("job.after-slice")
        return staged

    def _completion(
        self, source: Source, batch: Batch, staged: Slice | None, covered: KafkaOffsets, system_time: Timestamp
    ) -> Completion:
        counted = covered.model_copy(
            update={
                "messages": batch.messages,
                "records": batch.records,
                "duplicates": batch.duplicates,
                "dead_letters": len(batch.unreadable),
            }
        )
        next_offset = self._progress.next_offset
        return Completion(
            id=uuid4().hex,
            dataset_id=self._progress.dataset_id,
            system_time=system_time,
            set_data_schema=batch.set_data_schema,
            add_data=AddData(
                prev_offset=next_offset - 1 if next_offset else None,
                new_data=None if staged is None else staged.to_data_slice(),
                new_watermark=source.watermark(batch.max_event_time),
                new_source_state=counted.to_state(source.name),
            ),
        )

    def _proposed(self, source: Source, batch: Batch, completion: Completion) -> None:
        """Take the proposal into the account."""
        covered = source.covered_by(completion)
        self._progress.positions[source.name] = covered.next
        self._progress.system_time = completion.system_time
        if batch.rows is not None and completion.add_data.new_data is not None:
            self._progress.next_offset = completion.add_data.new_data.offset_interval.end + 1
            self._indexes.propose(batch.rows, next_offset=self._progress.next_offset)
        if batch.set_data_schema is not None:
            for name, other in self._sources.items():
                self._sources[name] = other.with_schema(batch.data_schema)


def _ends(messages: pa.Table) -> dict[int, int]:
    """Partition → the position behind its last message."""
    last = messages.group_by("partition").aggregate([("offset", "max")])
    return {
        partition: offset + 1
        for partition, offset in zip(last["partition"].to_pylist(), last["offset_max"].to_pylist(), strict=True)
    }


def _next_ms(moment: Timestamp) -> Timestamp:
    """The first full millisecond that is not before a time."""
    truncated = moment.truncated_to_ms()
    return truncated if truncated == moment else truncated.plus_seconds(0.001)


def _make_durable(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _count(source: Source, batch: Batch, seconds: float) -> None:
    labels = (source.dataset, source.name)
    metrics.MESSAGES.labels(*labels).inc(batch.messages)
    metrics.RECORDS.labels(*labels).inc(batch.records)
    metrics.ROWS.labels(*labels).inc(0 if batch.rows is None else batch.rows.num_rows)
    metrics.DUPLICATES.labels(*labels).inc(batch.duplicates)
    metrics.DEAD_LETTERS.labels(*labels).inc(len(batch.unreadable))
    metrics.BATCH_SECONDS.labels(*labels).observe(seconds)
    _log.debug("batch proposed", dataset=source.dataset, source=source.name, records=batch.records, seconds=seconds)
