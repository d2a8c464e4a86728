"""One dataset's batches, in order: raw messages → units → rows → durable slices → completions.

All sources of a dataset share a writer, as each record's offset follows from those before it. It stages a batch while
the ones before are still being committed, so it keeps its own account of where the chain will be; when a completion is
rejected that account is worthless, and the writer is thrown away for a new one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from odf_common.crash_points import crash_point
from odf_common.errors import OdfError, StoreUnavailableError
from odf_common.metadata.sources import MergeStrategySnapshot
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest import metrics
from streaming_jobs.ingest.batch_size import pieces
from streaming_jobs.ingest.draft import Draft
from streaming_jobs.ingest.held_pieces import HeldPieces
from streaming_jobs.ingest.letters import MessageLetters
from streaming_jobs.ingest.refusals import REFUSALS, find_refused, problem_of
from streaming_jobs.ingest.rows_of_units import Made, RowMaker
from streaming_jobs.ingest.splitter import Splitter
from streaming_jobs.ingest.staging_area import StagingArea
from streaming_jobs.ingest.units import Dropped, Payload, PlainRun, Refused, Unit, Uploaded, ends_of

if TYPE_CHECKING:
    from pathlib import Path

    from odf_common.chain.state import ChainState
    from odf_common.ingest.messages import Problem
    from odf_common.messages.completion import Completion
    from odf_common.uploads import UploadArea
    from streaming_jobs.ingest.draft import Counts
    from streaming_jobs.ingest.event_ids import EventIds
    from streaming_jobs.ingest.messenger import Messenger
    from streaming_jobs.ingest.source import CommittedBlock, Source
    from streaming_jobs.ingest.state import KeyedStates

_log = structlog.get_logger(__name__)


class AnotherTopicError(OdfError):
    """A source's topic is not the one any more that its positions are of."""


@dataclass(frozen=True, slots=True)
class _Unused:
    """An upload that nobody needs any more once the chain is there."""

    source_name: str
    next: Mapping[int, int]
    name: str


class BatchWriter:
    """Stages and proposes the batches of one dataset. Used by one thread."""

    def __init__(
        self,
        chain: ChainState,
        sources: Mapping[str, Source],
        *,
        staging: Path,
        messenger: Messenger,
        states: KeyedStates,
        uploads: UploadArea,
        topic_id_of: Callable[[str], str],
        ids: Mapping[str, EventIds] | None = None,
        max_payload_size: int = 1 << 32,
        is_closed: Callable[[], bool] = lambda: False,
    ) -> None:
        assert chain.dataset_id is not None
        self._dataset_id = chain.dataset_id
        self._next_offset = chain.next_offset
        self._system_time = chain.system_time
        self._watermark = chain.watermark
        self._sources = dict(sources)
        self._positions: dict[str, Mapping[int, int]] = {
            name: source.read_before.next for name, source in sources.items() if source.read_before
        }
        self._area = StagingArea(staging, self._dataset_id)
        self._messenger = messenger
        self._states = states
        self._uploads = uploads
        self._ids = dict(ids or {})
        self._topic_id_of = topic_id_of
        self._is_closed = is_closed
        self._unused: deque[_Unused] = deque()
        self._rows = RowMaker(
            dataset_id=self._dataset_id, states=states, uploads=uploads, max_payload_size=max_payload_size
        )
        self._splitters = {
            name: Splitter(
                one_payload_each=isinstance(source.plan.source.merge, MergeStrategySnapshot),
                ids=self._ids.get(name),
                fetched=source.read_before.fetched if source.read_before else None,
                max_payload_size=max_payload_size,
                cut=partial(pieces, settings=source.binding.settings),
                hold=lambda: HeldPieces(self._area.folder),
            )
            for name, source in sources.items()
        }

    def write(
        self, source_name: str, messages: pa.Table, announce: Callable[[Completion], None] = lambda done: None
    ) -> Iterator[Completion | None]:
        """Stage and propose messages, in as many batches as they ask for.

        Each proposal is announced just before it is sent, so that whoever listens for its answer knows it by then, and
        yielded when it was. None instead: the next batch must wait until something more is committed.
        """
        self._check_topic(self._sources[source_name])
        for unit in self._splitters[source_name].units(messages):
            yield from self._written(source_name, unit, announce)

    def committed(self, block: CommittedBlock) -> None:
        """Take note that a batch of this writer is in the chain, and all rows before its end."""
        if block.next_offset is not None:
            self._states.committed(block.next_offset)
        if (ids := self._ids.get(block.source_name)) is not None:
            crash_point("job.before-ids")
            ids.committed(block.next, block.block_hash)
        self._note_watermark(block.watermark)
        waiting = [each for each in self._unused if each.source_name == block.source_name]
        for unused in waiting:
            if any(block.next.get(partition, 0) < position for partition, position in unused.next.items()):
                break
            self._unused.remove(unused)
            self._uploads.remove(self._dataset_id, unused.name)

    def close(self) -> None:
        """Let go of the files."""
        for splitter in self._splitters.values():
            splitter.close()
        self._states.close()
        for ids in self._ids.values():
            ids.close()

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

    def _written(
        self, source_name: str, unit: Unit, announce: Callable[[Completion], None]
    ) -> Iterator[Completion | None]:
        if isinstance(unit, Payload | Uploaded):
            while not self._states.is_ready_for(self._sources[source_name].plan):
                yield None
        started = time.perf_counter()
        draft = self._draft(source_name)
        if isinstance(unit, PlainRun) and not self._add_run(draft, unit):
            half = unit.messages.num_rows // 2
            for part in (unit.part(0, half), unit.part(half, unit.messages.num_rows)):
                yield from self._written(source_name, part, announce)
            return
        if isinstance(unit, Payload | Uploaded):
            draft = self._with_payload(draft, unit)
        elif isinstance(unit, Dropped):
            draft.count(self._rows.dropped(draft.source, unit))
        elif isinstance(unit, Refused):
            draft.bury(MessageLetters(unit.messages, unit.problem))
        yield self._propose(draft, unit, announce, started)

    def _draft(self, source_name: str) -> Draft:
        return Draft(
            source=self._sources[source_name],
            next_offset=self._next_offset,
            system_time=self._next_system_time(),
            area=self._area,
            states=self._states,
        )

    def _add_run(self, draft: Draft, run: PlainRun) -> bool:
        """Add messages to a draft, those that are refused as dead letters; False if they are only refused together."""
        messages = run.new_messages()
        refused: dict[int, Problem] = {}
        found: Made | None
        try:
            found = self._rows.of_run(draft, messages, run.media_type, self._watermark)
        except REFUSALS:
            attempt = partial(self._rows.of_run, draft, media_type=run.media_type, watermark=self._watermark)
            refused = find_refused(messages, attempt, is_closed=self._is_closed)
            kept = [row for row in range(messages.num_rows) if row not in refused]
            try:
                good = messages.take(pa.array(kept, pa.int64()))
                found = self._rows.of_run(draft, good, run.media_type, self._watermark) if kept else None
            except REFUSALS:
                if messages.num_rows == 1:
                    raise
                return False
        if found is not None:
            draft.add(found.batch)
            draft.letters += found.letters
        draft.bury(MessageLetters(messages, refused))
        draft.count(self._rows.repeated(draft.source, run))
        return True

    def _with_payload(self, draft: Draft, unit: Payload | Uploaded) -> Draft:
        """A draft with all of a payload, or with its messages as dead letters."""
        try:
            for found in self._rows.of_payload(draft, unit, self._watermark):
                if self._is_closed():
                    raise StoreUnavailableError("the run is over: its payload is read again")
                draft.add(found.batch)
                draft.letters += found.letters
        except REFUSALS as error:
            draft.withdraw()
            draft = self._draft(draft.source.name)
            draft.bury(MessageLetters(unit.messages, problem_of(error)))
            return draft
        except BaseException:
            draft.withdraw()
            raise
        return draft

    def _propose(self, draft: Draft, unit: Unit, announce: Callable[[Completion], None], started: float) -> Completion:
        source = draft.source
        if draft.letters or draft.buried:
            crash_point("job.before-dead-letters")
            letters = draft.all_letters()
            self._messenger.bury(self._dataset_id, source, letters, draft.system_time, is_closed=self._is_closed)
            crash_point("job.after-dead-letters")
        start = self._positions.get(source.name, {})
        end = dict(start) | ends_of(unit.messages)
        completion = draft.completion(
            self._dataset_id,
            start=start,
            end=end,
            messages=unit.messages.num_rows,
            repeats=unit.repeats,
            fetched=self._splitters[source.name].fetched,
        )
        announce(completion)
        self._messenger.propose(completion)
        crash_point("job.after-completion")
        self._take_into_account(draft, unit, end)
        _count(source, draft.counts, unit.messages.num_rows, time.perf_counter() - started)
        return completion

    def _take_into_account(self, draft: Draft, unit: Unit, end: Mapping[int, int]) -> None:
        name = draft.source.name
        self._positions[name] = end
        self._system_time = draft.system_time
        self._next_offset = draft.next_offset
        self._note_watermark(draft.watermark)
        if not draft.counts.is_taken:
            self._splitters[name].release(unit)
        if (ids := self._ids.get(name)) is not None:
            ids.propose(unit.taken if draft.counts.is_taken else (), end, draft.system_time)
        schema = draft.source.plan.data_schema
        if schema is not self._sources[name].plan.data_schema:
            assert schema is not None
            self._sources = {key: source.with_schema(schema) for key, source in self._sources.items()}
        # What became a dead letter is kept, so that it can be sent again.
        is_needed = isinstance(unit, Dropped) and bool(unit.repeats)
        upload = unit.upload if isinstance(unit, Uploaded | Dropped) else None
        if upload is not None and not is_needed and draft.buried is None:
            self._unused.append(_Unused(name, end, upload.name))

    def _note_watermark(self, watermark: Timestamp | None) -> None:
        self._watermark = max(filter(None, (self._watermark, watermark)), default=None)

    def _next_system_time(self) -> Timestamp:
        """Now in milliseconds, but not before the block before, should the clock have gone back."""
        now = Timestamp.now().truncated_to_ms()
        if self._system_time is None or now >= self._system_time:
            return now
        last = self._system_time.truncated_to_ms()
        return last if last == self._system_time else last.plus_seconds(0.001)


def _count(source: Source, counts: Counts, messages: int, seconds: float) -> None:
    labels = (source.dataset, source.name)
    metrics.MESSAGES.labels(*labels).inc(messages)
    metrics.RECORDS.labels(*labels).inc(counts.records)
    metrics.ROWS.labels(*labels).inc(counts.rows)
    metrics.DERIVED.labels(*labels).inc(counts.derived)
    metrics.DUPLICATES.labels(*labels).inc(counts.duplicates)
    metrics.DEAD_LETTERS.labels(*labels).inc(counts.dead_letters)
    metrics.LATE.labels(*labels).inc(counts.late)
    metrics.BALANCE.labels(*labels).inc(counts.balance)
    metrics.BATCH_SECONDS.labels(*labels).observe(seconds)
    _log.debug(
        "batch proposed", dataset=source.dataset, source=source.name, rows=counts.rows, seconds=round(seconds, 4)
    )
