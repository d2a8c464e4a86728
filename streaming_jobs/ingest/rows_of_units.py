"""From units to the rows of slices: read, preprocessed, merged and complete."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.batch import Batch, ReadRows, batch_of, complete, read_rows
from odf_common.ingest.merge import Merged
from odf_common.ingest.payload_file import PART_SIZE
from odf_common.metadata.sources import MergeStrategySnapshot
from streaming_jobs.ingest.draft import Counts
from streaming_jobs.ingest.letters import Letter, letters_of_records
from streaming_jobs.ingest.payloads import Formats, opened_upload, records_of_messages, together
from streaming_jobs.ingest.refusals import REFUSALS
from streaming_jobs.ingest.state import SnapshotState
from streaming_jobs.ingest.units import Uploaded

if TYPE_CHECKING:
    from odf_common.identity.did import DatasetId
    from odf_common.ingest.read.records import Records
    from odf_common.ingest.source import SourcePlan
    from odf_common.timestamp import Timestamp
    from odf_common.uploads import UploadArea
    from streaming_jobs.ingest.draft import Draft
    from streaming_jobs.ingest.source import Source
    from streaming_jobs.ingest.state import KeyedStates
    from streaming_jobs.ingest.units import Dropped, Payload, PlainRun


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of a slice, and what of them becomes dead letters; the batch counts those in."""

    batch: Batch
    letters: list[Letter]


class RowMaker:
    """Makes rows for the sources of one dataset. Nothing that it does leaves a trace."""

    def __init__(
        self, *, dataset_id: DatasetId, states: KeyedStates, uploads: UploadArea, max_payload_size: int
    ) -> None:
        self._dataset_id = dataset_id
        self._states = states
        self._uploads = uploads
        self._max_payload_size = max_payload_size
        self._formats: dict[str, Formats] = {}

    def of_run(self, draft: Draft, messages: pa.Table, media_type: str | None, watermark: Timestamp | None) -> Made:
        """Messages that have nothing to do with each other. Raises REFUSALS."""
        source = draft.source
        form = self._format(source).of(media_type)
        made = self._made(draft, form.reader.read(messages), watermark, messages=messages.num_rows)
        return Made(made, letters_of_records(made.unreadable, media_type))

    def of_payload(self, draft: Draft, unit: Payload | Uploaded, watermark: Timestamp | None) -> Iterator[Made]:
        """A payload as a whole, in slices of bounded size; what it raises in the end is about all of it.

        Each slice must be in the draft before the next one is asked for. Raises REFUSALS.
        """
        settings = draft.source.binding.settings
        is_upload = isinstance(unit, Uploaded)
        media_type = unit.upload.media_type if isinstance(unit, Uploaded) else unit.media_type
        form = self._format(draft.source).of(media_type)
        with ExitStack() as stack:
            if isinstance(unit, Uploaded):
                parts = stack.enter_context(
                    opened_upload(
                        self._uploads,
                        self._dataset_id,
                        unit.upload,
                        form,
                        unit.messages,
                        max_size=self._max_payload_size,
                        chunk_size=min(settings.batch_bytes, PART_SIZE),
                    )
                )
            else:
                parts = records_of_messages(form, unit.messages, settings)
            for batch in self._batches(draft, parts, watermark, pc.max(unit.messages["timestamp"])):
                yield Made(batch, letters_of_records(batch.unreadable, media_type, in_upload=is_upload))

    def repeated(self, source: Source, run: PlainRun) -> Counts:
        """The records of messages that were taken before."""
        if not len(run.repeated):
            return Counts()
        return self._duplicates(source, run.messages.take(pa.array(run.repeated)), run.media_type)

    def dropped(self, source: Source, unit: Dropped) -> Counts:
        """The records of a payload that is not taken; a poll that came too late is nothing at all."""
        if not unit.repeats:
            return Counts()
        if unit.upload is not None:
            return Counts(records=1, duplicates=1)  # its file may be gone: it counts as the message that it is
        return self._duplicates(source, unit.messages, unit.media_type)

    def _duplicates(self, source: Source, messages: pa.Table, media_type: str | None) -> Counts:
        try:
            count = self._format(source).of(media_type).reader.read(messages).count
        except REFUSALS:
            count = messages.num_rows
        return Counts(records=count, duplicates=count)

    def _format(self, source: Source) -> Formats:
        known = self._formats.get(source.name)
        if known is None or known.plan is not source.plan:
            known = self._formats[source.name] = Formats(source.plan)
        return known

    def _batches(
        self, draft: Draft, parts: Iterator[Records], watermark: Timestamp | None, time: pa.Scalar
    ) -> Iterator[Batch]:
        plan = draft.source.plan
        state = self._states.for_source(plan)
        if isinstance(state, SnapshotState):
            if draft.source.preprocess is not None:
                parts = together(parts)
            yield from self._of_snapshot(draft, state, parts, watermark, time)
            return
        for records in parts:
            yield self._made(draft, records, watermark)

    def _made(self, draft: Draft, records: Records, watermark: Timestamp | None, *, messages: int = 0) -> Batch:
        source = draft.source
        return batch_of(
            source.plan,
            self._read(source, source.plan, records),
            messages=messages,
            next_offset=draft.next_offset,
            system_time=draft.system_time,
            state=self._states.for_source(source.plan),
            watermark=watermark,
            max_ahead_s=source.binding.settings.max_ahead_s,
        )

    def _read(self, source: Source, plan: SourcePlan, records: Records) -> ReadRows:
        return read_rows(
            plan,
            records,
            preprocess=source.preprocess,
            accept_new_columns=source.binding.settings.accept_new_columns,
        )

    def _of_snapshot(
        self,
        draft: Draft,
        state: SnapshotState,
        parts: Iterator[Records],
        watermark: Timestamp | None,
        time: pa.Scalar,
    ) -> Iterator[Batch]:
        source = draft.source
        strategy = source.plan.source.merge
        assert isinstance(strategy, MergeStrategySnapshot)
        reading = _SnapshotReading(partial(self._read, source), source.plan)
        tables = reading.tables(parts)
        first = next(tables, None)
        if first is None:
            return  # not even columns are known: nothing is said, not that nothing is there
        changes = _joined(state.merge(strategy, itertools.chain([first], tables)), source.binding.settings.batch_bytes)
        # Where nothing changes, there may still be a schema.
        for merged in itertools.chain([next(changes, None)], changes):
            yield complete(
                draft.source.plan,
                merged,
                times=time,
                schema=reading.plan.data_schema,
                next_offset=draft.next_offset,
                system_time=draft.system_time,
                watermark=watermark,
                max_ahead_s=source.binding.settings.max_ahead_s,
            )


class _SnapshotReading:
    """The parts of a snapshot; new columns of one count for those behind it."""

    def __init__(self, read: Callable[[SourcePlan, Records], ReadRows], plan: SourcePlan) -> None:
        self._read = read
        self.plan = plan
        """After the parts so far."""

    def tables(self, parts: Iterator[Records]) -> Iterator[pa.Table]:
        """The rows that there are."""
        for records in parts:
            found = self._read(self.plan, records)
            if found.rows is None:
                continue
            if found.schema is not None and found.schema is not self.plan.data_schema:
                self.plan = self.plan.evolved(found.schema)
            yield found.rows


def _joined(parts: Iterator[Merged], size: int) -> Iterator[Merged]:
    """The same changes in parts of about so many bytes, each of which counts its own rows."""
    waiting: list[Merged] = []
    for part in parts:
        waiting.append(part)
        if sum(each.rows.nbytes for each in waiting) >= size:
            yield _as_one(waiting)
            waiting = []
    if waiting:
        yield _as_one(waiting)


def _as_one(parts: list[Merged]) -> Merged:
    source_row = np.concatenate([each.source_row for each in parts])
    return Merged(
        rows=pa.concat_tables([each.rows for each in parts]).combine_chunks(),
        op=pa.concat_arrays([each.op for each in parts]),
        source_row=source_row,
        duplicates=sum(each.duplicates for each in parts),
        derived=int((source_row < 0).sum()),
    )
