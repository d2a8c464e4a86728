"""A dataset with push sources in a temporary folder; the broker, the queries and the committer are played."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    ReadStep,
    ReadStepNdJson,
)
from odf_common.staging import staged_slice
from odf_common.storage.dataset_folder import local_folder
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal
from services.committer.decide import Append, decide
from streaming_jobs.ingest.key_index import KeyIndexes
from streaming_jobs.ingest.messenger import Messenger
from streaming_jobs.ingest.source import Source
from streaming_jobs.ingest.writer import BatchWriter

LONG_AGO = Timestamp.parse("2020-01-01T00:00:00Z")
COLUMNS = ("event_time TIMESTAMP", "city STRING", "population BIGINT")
APPEND = MergeStrategyAppend()
LEDGER = MergeStrategyLedger(primary_key=("city",))
TIME_US = 1_700_000_000_000_000
TOPIC_ID = "topic-1"

Preprocess = Callable[[pa.Table], pa.Table]


def messages(*values: bytes | None, start: int = 0, partition: int = 0) -> pa.Table:
    """Messages of one partition from a position on, a millisecond apart."""
    numbers = range(start, start + len(values))
    times = [TIME_US + number * 1000 for number in numbers]
    columns: list[Sequence[Any]] = [[partition] * len(values), list(numbers), times, list(values)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, MESSAGES, strict=True)], schema=MESSAGES)


def event(city: str, **more: Any) -> bytes:
    return json.dumps({"city": city, **more}).encode()


def binding_of(name: str, dataset_id: DatasetId, **settings: Any) -> PushSourceBinding:
    return PushSourceBinding(
        dataset_id=dataset_id, source_name=name, topic=f"topic.{name}", settings=SourceSettings(**settings)
    )


class PlayedMessenger:
    """Remembers what was sent, in its order."""

    def __init__(self) -> None:
        self.sent: list[Completion | Unreadable] = []

    def propose(self, completion: Completion) -> None:
        self.sent.append(completion)

    def bury(
        self,
        dataset_id: DatasetId,
        source: Source,
        records: Iterable[Unreadable],
        found: Timestamp,
        *,
        is_closed: Callable[[], bool],
    ) -> None:
        self.sent += records

    @property
    def letters(self) -> list[Unreadable]:
        return [each for each in self.sent if isinstance(each, Unreadable)]


@dataclass
class Bench:
    """The dataset, what was staged for it, and a committer that decides as the real one does."""

    folder: Path
    merges: Mapping[str, MergeStrategy] = field(default_factory=lambda: {"default": APPEND})
    read: ReadStep = field(default_factory=lambda: ReadStepNdJson(ddl_schema=COLUMNS))
    settings: Mapping[str, Any] = field(default_factory=dict)
    messenger: PlayedMessenger = field(default_factory=PlayedMessenger)
    dataset_id: DatasetId = field(default_factory=lambda: KeyPair.generate().dataset_id)

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
        added = state.push_source(name)
        assert added is not None
        schema = None if state.data_schema is None else to_arrow(state.data_schema)
        read = state.source_state(name)
        return Source(
            dataset="cities",
            binding=binding_of(name, self.dataset_id, **self.settings),
            topic_id=TOPIC_ID,
            plan=SourcePlan.of(added, state.vocabulary, schema),
            preprocess=preprocess,
            read_before=None if read is None else KafkaOffsets.of_state(read),
        )

    def sources(self) -> dict[str, Source]:
        return {name: self.source(name) for name in self.merges}

    def indexes(self) -> KeyIndexes:
        """The indexes of all sources, brought up to date."""
        plans = [source.plan for source in self.sources().values()]
        indexes = KeyIndexes.for_plans(self.folder / "index", self.dataset_id, plans)
        indexes.catch_up(self.chain, self.store.objects, self.chain.state().vocabulary)
        return indexes

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
            indexes=self.indexes(),
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
            if (data := done.add_data.new_data) is not None:
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
