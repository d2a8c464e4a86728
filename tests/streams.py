"""A push source without its job: batches staged as the ingest job does, and the completions that propose them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from odf_common.chain.state import ChainState, next_block
from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.data.slice_writer import SliceWriter
from odf_common.identity.did import DatasetId
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.messages.completion import Completion
from odf_common.messages.kafka_offsets import AcceptedGap, KafkaOffsets
from odf_common.metadata.events import AddData, AddPushSource, DatasetKind, MetadataEvent, Seed, SetDataSchema
from odf_common.metadata.fragments import DataSlice
from odf_common.metadata.sources import MergeStrategyAppend, ReadStepNdJson
from odf_common.repository.repository import Dataset, Repository
from odf_common.staging import staged_slice, staging_folder
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal
from odf_common.wire.encoded_block import EncodedBlock
from tests.datasets import SYSTEM_COLUMNS

START = Timestamp.parse("2024-01-01T00:00:00Z")
SCHEMA = pa.schema([*SYSTEM_COLUMNS, pa.field("city", pa.string()), pa.field("population", pa.int64())])
WIDER_SCHEMA = pa.schema([*SCHEMA, pa.field("area", pa.float64())])
TOPIC_ID = "topic-1"


def a_source(name: str = "default") -> AddPushSource:
    columns = ("event_time TIMESTAMP", "city STRING", "population BIGINT")
    return AddPushSource(source_name=name, read=ReadStepNdJson(ddl_schema=columns), merge=MergeStrategyAppend())


def a_seed(dataset_id: DatasetId) -> Seed:
    return Seed(dataset_id=dataset_id, dataset_kind=DatasetKind.ROOT)


def sealed(events: Sequence[MetadataEvent], chain: ChainState | None = None) -> tuple[list[EncodedBlock], ChainState]:
    """Blocks that append events, all at the same time, and the chain after them."""
    chain = chain or ChainState()
    blocks = []
    for event in events:
        block = seal(next_block(chain, event, system_time=chain.system_time or START))
        chain = chain.followed_by(block.block, block.hash)
        blocks.append(block)
    return blocks, chain


def a_chain(dataset_id: DatasetId, *, sources: Sequence[str] = ("default",)) -> ChainState:
    return sealed([a_seed(dataset_id), *map(a_source, sources)])[1]


def create_dataset(
    repository: Repository, alias: str, *, sources: Sequence[str] = ("default",), key_pair: KeyPair | None = None
) -> Dataset:
    """A dataset with push sources and no data. The same key pair gives the same blocks."""
    dataset_id = (key_pair or KeyPair.generate()).dataset_id
    blocks, chain = sealed([a_seed(dataset_id), *map(a_source, sources)])
    objects = repository.folder(dataset_id).objects
    for block in blocks:
        objects.put_block(block.hash, block.data)
    assert chain.head is not None
    return repository.create(dataset_id, DatasetAlias.parse(alias), DatasetKind.ROOT, head=chain.head)


@dataclass
class Publisher:
    """Makes one batch after the other for a dataset, as a job does that knows only what it has sent.

    Without `staging`, slices are described but not written. One message is one record, in partition 0 unless said
    otherwise; times are those of a clock that ticks once a batch.
    """

    dataset_id: DatasetId
    staging: Path | None = None
    source: str = "default"
    topic_id: str = TOPIC_ID
    schema: pa.Schema = field(default_factory=lambda: SCHEMA)
    offset: int = 0
    positions: dict[int, int] = field(default_factory=dict)
    batches: int = 0
    has_schema: bool = False

    def batch(
        self,
        rows: int = 3,
        *,
        partition: int = 0,
        dead_letters: int = 0,
        system_time: Timestamp | None = None,
        watermark: Timestamp | None = None,
        gap: AcceptedGap | None = None,
    ) -> Completion:
        """The next batch; without rows it only covers positions."""
        self.batches += 1
        time = system_time or START.plus_seconds(self.batches)
        following = self.positions | {partition: self.positions.get(partition, 0) + rows + dead_letters}
        state = KafkaOffsets(
            topic=f"topic.{self.source}",
            topic_id=self.topic_id,
            start=self.positions,
            next=following,
            messages=rows + dead_letters,
            records=rows + dead_letters,
            dead_letters=dead_letters,
            accepted_gap=gap,
        ).to_state(self.source)
        done = Completion(
            id=f"{self.source}/{self.batches}",
            dataset_id=self.dataset_id,
            system_time=time,
            events=(
                *(() if self.has_schema or not rows else (self.set_data_schema(),)),
                AddData(
                    prev_offset=self.offset - 1 if self.offset else None,
                    new_data=self.slice(rows, time) if rows else None,
                    new_watermark=watermark or time,
                    new_source_state=state,
                ),
            ),
        )
        self.offset += rows
        self.positions = following
        self.has_schema = self.has_schema or bool(rows)
        return done

    def batches_of(self, count: int, rows: int = 3) -> list[Completion]:
        return [self.batch(rows) for _ in range(count)]

    def evolve(self, schema: pa.Schema) -> None:
        """Let the next batch bring another schema."""
        self.schema, self.has_schema = schema, False

    def set_data_schema(self) -> SetDataSchema:
        return SetDataSchema(raw_arrow_schema=encode_arrow_schema(self.schema))

    def slice(self, rows: int, system_time: Timestamp) -> DataSlice:
        """Stage the next records."""
        if self.staging is None:
            return described_slice(self.offset, rows)
        folder = staging_folder(self.staging, self.dataset_id)
        folder.mkdir(parents=True, exist_ok=True)
        with SliceWriter(folder / f"{self.source}.pending", self.schema) as writer:
            writer.write(records(self.schema, self.offset, rows, system_time))
        written = writer.close()
        written.path.replace(staged_slice(self.staging, self.dataset_id, written.physical_hash))
        return written.to_data_slice()

    def beside(self, source: str) -> Publisher:
        """Another source of the same dataset; who makes a batch first tells the other by `offset`."""
        return replace(self, source=source, positions={}, batches=0)


def take_turns(publishers: Sequence[Publisher], count: int, rows: int = 3) -> Iterator[Completion]:
    """Batches of several sources of one dataset in turn, with offsets and times that go on."""
    offset, has_schema = publishers[0].offset, publishers[0].has_schema
    for number in range(count):
        publisher = publishers[number % len(publishers)]
        publisher.offset, publisher.has_schema = offset, has_schema
        yield publisher.batch(rows, system_time=START.plus_seconds(number + 1))
        offset, has_schema = publisher.offset, True


def described_slice(start: int, rows: int) -> DataSlice:
    """A slice that exists in words only."""
    from odf_common.identity.multihash import ARROW0_SHA3_256, Multihash, sha3_256
    from odf_common.metadata.fragments import OffsetInterval

    digest = sha3_256(f"{start}+{rows}".encode())
    return DataSlice(
        logical_hash=Multihash(ARROW0_SHA3_256, digest.digest),
        physical_hash=digest,
        offset_interval=OffsetInterval(start=start, end=start + rows - 1),
        size=1000 + rows,
    )


def records(schema: pa.Schema, start: int, count: int, system_time: Timestamp) -> pa.RecordBatch:
    """Records from offset `start` on."""
    numbers = range(start, start + count)
    moment = system_time.to_datetime()
    columns = {
        "offset": list(numbers),
        "op": [0] * count,
        "system_time": [moment.replace(microsecond=moment.microsecond // 1000 * 1000)] * count,
        "event_time": [START.to_datetime() + timedelta(seconds=number) for number in numbers],
        "city": [f"city {number}" for number in numbers],
        "population": [number * 1000 for number in numbers],
        "area": [number / 4 for number in numbers],
    }
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema)
