"""A small but complete dataset: a source, slices, a watermark-only block, a column added on the way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.data.slice_writer import SliceWriter
from odf_common.identity.did import DatasetId
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.multihash import sha3_256
from odf_common.metadata.events import AddData, AddPushSource, DatasetKind, MetadataEvent, Seed, SetDataSchema
from odf_common.metadata.fragments import Checkpoint, DataSlice, SourceState
from odf_common.metadata.sources import MergeStrategyAppend, ReadStepNdJson
from odf_common.storage.dataset_folder import DatasetFolder
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal

START = Timestamp.parse("2024-01-01T00:00:00Z")
DAY = 86_400

SYSTEM_COLUMNS = [
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("op", pa.int32(), nullable=False),
    pa.field("system_time", pa.timestamp("ms", "UTC"), nullable=False),
    pa.field("event_time", pa.timestamp("ms", "UTC")),
]
SCHEMA = pa.schema([*SYSTEM_COLUMNS, pa.field("city", pa.string()), pa.field("population", pa.int64())])
WIDER_SCHEMA = pa.schema([*SCHEMA, pa.field("area", pa.float64())])


def watermark(day: int) -> Timestamp:
    return START.plus_seconds(day * DAY)


def rows(schema: pa.Schema, start: int, count: int) -> pa.RecordBatch:
    """Records from offset `start` on; every third city has no population."""
    numbers = range(start, start + count)
    columns = {
        "offset": list(numbers),
        "op": [0] * count,
        "system_time": [datetime(2024, 2, 1, tzinfo=UTC)] * count,
        "event_time": [watermark(number).to_datetime() for number in numbers],
        "city": [f"city {number} ü" for number in numbers],
        "population": [None if number % 3 == 0 else number * 1000 for number in numbers],
        "area": [number / 4 for number in numbers],
    }
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema)


def put_slice(folder: DatasetFolder, staging: Path, schema: pa.Schema, start: int, count: int) -> DataSlice:
    """Write a slice and put it where it belongs."""
    with SliceWriter(staging / "slice.pending", schema) as writer:
        writer.write(rows(schema, start, count))
    written = writer.close()
    folder.objects.put_file(ObjectKind.DATA, written.physical_hash, written.path)
    return written.to_data_slice()


def put_checkpoint(folder: DatasetFolder, staging: Path, content: bytes) -> Checkpoint:
    """Store an opaque checkpoint."""
    staged = staging / "checkpoint.pending"
    staged.write_bytes(content)
    checkpoint = Checkpoint(physical_hash=sha3_256(content), size=len(content))
    folder.objects.put_file(ObjectKind.CHECKPOINTS, checkpoint.physical_hash, staged)
    return checkpoint


def position(value: int) -> SourceState:
    return SourceState(source_name="default", kind="odf-streams/kafka-offsets", value=f'{{"0":{value}}}')


def make_dataset(folder: DatasetFolder, staging: Path, *, dataset_id: DatasetId | None = None) -> MetadataChain:
    """Nine blocks and three slices with nine records."""
    chain = MetadataChain(folder.objects, folder.refs)
    columns = ("event_time TIMESTAMP", "city STRING", "population BIGINT")
    checkpoint = put_checkpoint(folder, staging, b"state of an engine")

    def data(schema: pa.Schema, start: int, mark: int, **fields: Any) -> AddData:
        return AddData(
            prev_offset=start - 1 if start else None,
            new_data=put_slice(folder, staging, schema, start, 3),
            new_watermark=watermark(mark),
            new_source_state=position(start + 3),
            **fields,
        )

    append_all(
        chain,
        [
            Seed(dataset_id=dataset_id or KeyPair.generate().dataset_id, dataset_kind=DatasetKind.ROOT),
            AddPushSource(source_name="default", read=ReadStepNdJson(ddl_schema=columns), merge=MergeStrategyAppend()),
            SetDataSchema(raw_arrow_schema=encode_arrow_schema(SCHEMA)),
            data(SCHEMA, 0, 2),
            data(SCHEMA, 3, 5, new_checkpoint=checkpoint),
            AddData(
                prev_offset=5,
                prev_checkpoint=checkpoint.physical_hash,
                new_checkpoint=checkpoint,
                new_watermark=watermark(30),
                new_source_state=position(6),
            ),
            AddPushSource(
                source_name="default",
                read=ReadStepNdJson(ddl_schema=(*columns, "area DOUBLE")),
                merge=MergeStrategyAppend(),
            ),
            SetDataSchema(raw_arrow_schema=encode_arrow_schema(WIDER_SCHEMA)),
            data(WIDER_SCHEMA, 6, 30, prev_checkpoint=checkpoint.physical_hash, new_checkpoint=checkpoint),
        ],
    )
    return chain


def append_all(chain: MetadataChain, events: Sequence[MetadataEvent]) -> None:
    """One block a second."""
    for event in events:
        state = chain.state()
        moment = START.plus_seconds(100 * DAY + state.next_sequence_number)
        chain.append([seal(next_block(state, event, system_time=moment))])
