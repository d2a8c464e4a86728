"""A completion in the making: slices staged one after the other, and what there is to count."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from odf_common.messages.completion import BatchEvent, Completion
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData

if TYPE_CHECKING:
    from odf_common.identity.did import DatasetId
    from odf_common.ingest.batch import Batch
    from odf_common.messages.kafka_offsets import Repeat
    from odf_common.messages.payload import FetchedState
    from odf_common.metadata.events import SetDataSchema
    from odf_common.metadata.fragments import DataSlice
    from odf_common.timestamp import Timestamp
    from streaming_jobs.ingest.letters import Letter, MessageLetters
    from streaming_jobs.ingest.source import Source
    from streaming_jobs.ingest.staging_area import StagingArea
    from streaming_jobs.ingest.state import KeyedStates


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of records. `records` + `derived` = rows + `duplicates` + `dead_letters`."""

    records: int = 0
    duplicates: int = 0
    dead_letters: int = 0
    derived: int = 0
    late: int = 0
    messages: int = 0
    rows: int = 0

    @property
    def balance(self) -> int:
        """Not 0 where something is not accounted for."""
        return self.records + self.derived - self.rows - self.duplicates - self.dead_letters

    @property
    def is_taken(self) -> bool:
        """Whether the messages take their event ids: what became dead letters as a whole may be sent again."""
        return self.rows > 0 or self.records != self.dead_letters

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.records + other.records,
            self.duplicates + other.duplicates,
            self.dead_letters + other.dead_letters,
            self.derived + other.derived,
            self.late + other.late,
            self.messages + other.messages,
            self.rows + other.rows,
        )

    @classmethod
    def of(cls, batch: Batch) -> Counts:
        """Those of a batch, dead letters included."""
        rows = 0 if batch.rows is None else batch.rows.num_rows
        return cls(batch.records, batch.duplicates, len(batch.unreadable), batch.derived, batch.late, rows=rows)


@dataclass(frozen=True, slots=True)
class _Part:
    """A slice, and the schema event before it."""

    schema: SetDataSchema | None
    prev_offset: int | None
    slice: DataSlice | None
    watermark: Timestamp | None
    counts: Counts


@dataclass(kw_only=True)
class Draft:
    """Either all of it is proposed, or it is withdrawn and leaves nothing."""

    source: Source
    """As it is after the slices so far."""
    next_offset: int
    system_time: Timestamp
    area: StagingArea
    states: KeyedStates
    letters: list[Letter] = field(default_factory=list)
    """Of records that the batches count."""
    buried: MessageLetters | None = None
    """Messages that no batch knows of."""
    watermark: Timestamp | None = None
    """The largest one that the slices stand for."""

    def __post_init__(self) -> None:
        self._start = self.next_offset
        self._parts: list[_Part] = []
        self._rest = self.counts = Counts()

    def add(self, batch: Batch) -> None:
        """Stage the rows of a batch, and let what follows know of them."""
        prev_offset = self.next_offset - 1 if self.next_offset else None
        staged = None
        if batch.rows is not None:
            staged = self.area.stage(batch.rows, self.source.vocabulary)
            self.next_offset = staged.offset_interval.end + 1
            self.states.propose(batch.rows, staged)
        if batch.set_data_schema is not None:
            assert batch.data_schema is not None
            self.source = self.source.with_schema(batch.data_schema)
        watermark = self.source.watermark(batch.max_event_time)
        self.watermark = max(filter(None, (self.watermark, watermark)), default=None)
        if staged is None and batch.set_data_schema is None:
            self.count(Counts.of(batch))  # a block has rows, or it covers positions: the next one tells of these
        else:
            part = _Part(batch.set_data_schema, prev_offset, staged, watermark, Counts.of(batch) + self._rest)
            self._parts.append(part)
            self._rest = Counts()
            self.counts += Counts.of(batch)

    def count(self, counts: Counts) -> None:
        """Count what no batch knows of."""
        self._rest += counts
        self.counts += counts

    def bury(self, messages: MessageLetters) -> None:
        """Count messages in that are no part of a batch; once."""
        if len(messages):
            self.buried = messages
            self.count(Counts(records=len(messages), dead_letters=len(messages)))

    def all_letters(self) -> Iterator[Letter]:
        """Those of records and of messages."""
        return itertools.chain(self.letters, self.buried or ())

    def withdraw(self) -> None:
        """Let go of what was staged: the payload cannot be taken."""
        if staged := [part.slice for part in self._parts if part.slice is not None]:
            self.states.withdraw(self._start)
            for each in staged:
                self.area.discard(each)

    def completion(
        self,
        dataset_id: DatasetId,
        *,
        start: Mapping[int, int],
        end: Mapping[int, int],
        messages: int,
        repeats: tuple[Repeat, ...],
        fetched: FetchedState | None,
    ) -> Completion:
        """The events of the batch: only the last one covers positions, so that they count together or not at all."""
        *before, last = self._closed_parts()
        topic = self.source.binding.topic
        nothing = KafkaOffsets(topic=topic, topic_id=self.source.topic_id, start=start, next=start, fetched=fetched)
        events: list[BatchEvent] = []
        for part in before:
            events += self._events(part, nothing)
        covered = nothing.model_copy(update={"next": end, "messages": messages, "repeats": repeats})
        events += self._events(last, covered)
        return Completion(id=uuid4().hex, dataset_id=dataset_id, system_time=self.system_time, events=tuple(events))

    def _closed_parts(self) -> list[_Part]:
        """The parts, with what was left to count; schemas that no rows followed stay in front of the last one."""
        if not self._parts:
            prev_offset = self.next_offset - 1 if self.next_offset else None
            return [_Part(None, prev_offset, None, None, self._rest)]
        last = self._parts[-1]
        return [*self._parts[:-1], replace(last, counts=last.counts + self._rest)]

    def _events(self, part: _Part, covered: KafkaOffsets) -> list[BatchEvent]:
        counts = part.counts
        offsets = covered.model_copy(
            update={
                "records": counts.records,
                "duplicates": counts.duplicates,
                "dead_letters": counts.dead_letters,
                "derived": counts.derived,
                "late": counts.late,
            }
        )
        added = AddData(
            prev_offset=part.prev_offset,
            new_data=part.slice,
            new_watermark=part.watermark,
            new_source_state=offsets.to_state(self.source.name),
        )
        return [added] if part.schema is None else [part.schema, added]
