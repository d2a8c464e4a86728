"""A dataset with push sources in a temporary folder; the broker, the queries and the committer are played."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from odf_common.catalog.records import PushSourceBinding, SourceSettings
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.source_certificate import SourceCertifier
from odf_common.chain.state import ChainState, next_block
from odf_common.data.arrow_types import to_arrow
from odf_common.data.slices import read_slice
from odf_common.identity.did import DatasetId
from odf_common.identity.key_pair import KeyPair
from odf_common.ingest.messages import MESSAGES, Unreadable
from odf_common.ingest.source import SourcePlan
from odf_common.messages.appending import appended_block
from odf_common.messages.block_appended import AppendedBlock
from odf_common.messages.completion import Completion
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddPushSource, DatasetKind, MetadataEvent, Seed
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStep,
    ReadStepNdJson,
)
from odf_common.metadata.transforms import SqlQueryStep, TransformSql
from odf_common.staging import staged_slice
from odf_common.storage.dataset_folder import local_folder
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from odf_common.uploads import UploadArea
from odf_common.wire.encode import seal
from services.committer.decide import Append, decide
from streaming_jobs.ingest.event_ids import EventIds
from streaming_jobs.ingest.letters import Letter
from streaming_jobs.ingest.messenger import Messenger
from streaming_jobs.ingest.source import CommittedBlock, Source
from streaming_jobs.ingest.state import KeyedStates
from streaming_jobs.ingest.writer import BatchWriter

LONG_AGO = Timestamp.parse("2020-01-01T00:00:00Z")
COLUMNS = ("event_time TIMESTAMP", "city STRING", "population BIGINT")
APPEND = MergeStrategyAppend()
LEDGER = MergeStrategyLedger(primary_key=("city",))
SNAPSHOT = MergeStrategySnapshot(primary_key=("city",))
UPSERT = MergeStrategyUpsertStream(primary_key=("city",))
TIME_US = 1_700_000_000_000_000
TOPIC_ID = "topic-1"

Preprocess = Callable[[pa.Table], pa.Table]


def messages(
    *values: bytes | None, start: int = 0, partition: int = 0, headers: Mapping[str, bytes | str] | None = None
) -> pa.Table:
    """Messages of one partition from a position on, a millisecond apart, all with the same headers."""
    numbers = range(start, start + len(values))
    times = [TIME_US + number * 1000 for number in numbers]
    pairs = None if headers is None else [{"key": key, "value": _bytes(value)} for key, value in headers.items()]
    places: list[Sequence[Any]] = [[partition] * len(values), list(numbers), times]
    columns = [*places, list(values), [pairs] * len(values)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, MESSAGES, strict=True)], schema=MESSAGES)


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text


def event(city: str, **more: Any) -> bytes:
    return json.dumps({"city": city, **more}).encode()


def binding_of(name: str, dataset_id: DatasetId, **settings: Any) -> PushSourceBinding:
    return PushSourceBinding(
        dataset_id=dataset_id, source_name=name, topic=f"topic.{name}", settings=SourceSettings(**settings)
    )


class PlayedMessenger:
    """Remembers what was sent, in its order."""

    def __init__(self) -> None:
        self.sent: list[Completion | Letter] = []

    def propose(self, completion: Completion) -> None:
        self.sent.append(completion)

    def bury(
        self,
        dataset_id: DatasetId,
        source: Source,
        letters: Iterable[Letter],
        found: Timestamp,
        *,
        is_closed: Callable[[], bool],
    ) -> None:
        self.sent += letters

    @property
    def letters(self) -> list[Unreadable]:
        return [each.record for each in self.sent if isinstance(each, Letter)]


@dataclass
class Bench:
    """The dataset, what was staged for it, and a committer that decides as the real one does."""

    folder: Path
    merges: Mapping[str, MergeStrategy] = field(default_factory=lambda: {"default": APPEND})
    read: ReadStep = field(default_factory=lambda: ReadStepNdJson(ddl_schema=COLUMNS))
    settings: Mapping[str, Any] = field(default_factory=dict)
    messenger: PlayedMessenger = field(default_factory=PlayedMessenger)
    dataset_id: DatasetId = field(default_factory=lambda: KeyPair.generate().dataset_id)
    max_payload_size: int = 1 << 32
    topic: list[pa.Table] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.topic_ids = {f"topic.{name}": TOPIC_ID for name in self.merges}
        self.store = local_folder(self.folder / str(self.dataset_id.multibase))
        self.chain = MetadataChain(self.store.objects, self.store.refs)
        self.append(Seed(dataset_id=self.dataset_id, dataset_kind=DatasetKind.ROOT))
        for name, merge in self.merges.items():
            self.append(AddPushSource(source_name=name, read=self.read, merge=merge))

    @property
    def staging(self) -> Path:
        return self.folder / "staging"

    def append(self, *events: MetadataEvent) -> None:
        for one in events:
            state = self.chain.state()
            self.chain.append([seal(next_block(state, one, system_time=state.system_time or LONG_AGO))])

    def source(self, name: str = "default", preprocess: Preprocess | None = None) -> Source:
        """A source as the pipeline makes it of the chain."""
        state = self.chain.state()
        added = state.source(name)
        assert added is not None
        schema = None if state.data_schema is None else to_arrow(state.data_schema)
        read = state.source_state(name)
        return Source(
            dataset="cities",
            binding=binding_of(name, self.dataset_id, **self.settings),
            topic_id=TOPIC_ID,
            plan=SourcePlan.of(added, state.vocabulary, schema, others=state.sources),
            preprocess=preprocess,
            read_before=None if read is None else KafkaOffsets.of_state(read),
        )

    def sources(self) -> dict[str, Source]:
        return {name: self.source(name) for name in self.merges}

    @property
    def indexes(self) -> Path:
        return self.folder / "index"

    @property
    def uploads(self) -> UploadArea:
        return UploadArea(self.folder / "uploads")

    def states(self) -> KeyedStates:
        """The states of all sources, brought up to date."""
        plans = [source.plan for source in self.sources().values()]
        states = KeyedStates.for_plans(self.indexes, self.dataset_id, plans)
        states.catch_up(self.chain, self.store.objects, self.chain.state().vocabulary)
        return states

    def ids(self, source: Source) -> EventIds:
        """The event ids of a source, brought up to date from what the topic holds."""
        window_s = source.binding.settings.event_id_window_s
        ids = EventIds.of_source(self.indexes, self.dataset_id, source.name, topic_id=TOPIC_ID, window_s=window_s)
        read = source.read_before.next if source.read_before else {}
        ids.catch_up(self.chain, source.name, read, self.headers)
        return ids

    def headers(
        self, start: Mapping[int, int], end: Mapping[int, int]
    ) -> Iterator[list[tuple[int, int, list[tuple[str, bytes]]]]]:
        """Those of the messages in `topic`."""
        for table in self.topic:
            for row in table.to_pylist():
                partition, offset = row["partition"], row["offset"]
                if start.get(partition, 0) <= offset < end.get(partition, 0):
                    yield [(partition, offset, [(each["key"], each["value"]) for each in row["headers"] or ()])]

    def writer(
        self,
        sources: Mapping[str, Source] | None = None,
        state: ChainState | None = None,
        is_closed: Callable[[], bool] = lambda: False,
    ) -> BatchWriter:
        return BatchWriter(
            state or self.chain.state(),
            sources or self.sources(),
            staging=self.staging,
            messenger=cast(Messenger, self.messenger),
            states=self.states(),
            uploads=self.uploads,
            ids={name: self.ids(source) for name, source in (sources or self.sources()).items()},
            max_payload_size=self.max_payload_size,
            topic_id_of=self.topic_ids.__getitem__,
            is_closed=is_closed,
        )

    def open_writer(self, is_closed: Callable[[], bool]) -> BatchWriter:
        """As a run asks for it."""
        return self.writer(is_closed=is_closed)

    def commit(self, *completions: Completion) -> list[AppendedBlock]:
        """What the committer does, and tells."""
        told = []
        for done in completions:
            decision = decide(self.chain.state(), done)
            assert isinstance(decision, Append), decision
            for data in done.slices:
                staged = staged_slice(self.staging, self.dataset_id, data.physical_hash)
                assert staged.stat().st_size == data.size
                self.store.objects.put_file(ObjectKind.DATA, data.physical_hash, staged)
            self.chain.append(decision.blocks)
            told += [appended_block(self.dataset_id, "cities", block) for block in decision.blocks]
        return told

    def rows(self) -> list[dict[str, Any]]:
        """All rows of the chain, in the order of their offsets."""
        return [row for each in reversed(list(self.chain.blocks())) for row in self._rows(each.block.event)]

    def _rows(self, event: MetadataEvent) -> Iterator[dict[str, Any]]:
        data = getattr(event, "new_data", None)
        if data is not None:
            with self.store.objects.open_file(ObjectKind.DATA, data.physical_hash) as file:
                for batch in read_slice(file):
                    yield from batch.to_pylist()

    def certify(self) -> None:
        """The blocks tile the topic, and the counts agree."""
        certifier = SourceCertifier()
        for block in reversed(list(self.chain.blocks())):
            certifier.block(block)


def offsets_of(completion: Completion) -> KafkaOffsets:
    state = completion.add_data.new_source_state
    assert state is not None
    found = KafkaOffsets.of_state(state)
    assert found is not None
    return found


def with_query(source: Source, query: Preprocess) -> Source:
    """The source with a preprocess step that this function plays."""
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query="select * from input"),))
    changed = source.plan.source.model_copy(update={"preprocess": transform})
    return replace(source, preprocess=query, plan=replace(source.plan, source=changed))


def completions(written: Iterator[Completion | None]) -> list[Completion]:
    """All of what a writer proposes that has nothing to wait for."""
    found = list(written)
    assert None not in found
    return cast("list[Completion]", found)


def committed_block(told: AppendedBlock) -> CommittedBlock:
    """What a run tells its writer of a block."""
    assert told.source is not None
    return CommittedBlock(
        source_name=told.source.name,
        next=told.source.next,
        system_time=told.system_time,
        block_hash=told.block_hash,
        next_offset=None if told.offset_interval is None else told.offset_interval.end + 1,
        watermark=told.watermark,
    )
