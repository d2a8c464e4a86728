"""Chains and events with defaults, so that a test shows only what matters."""

from __future__ import annotations

from typing import Any

from odf_common.chain.rules import check_append
from odf_common.chain.state import ChainState, next_block
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.metadata.data_schema import (
    DataField,
    DataSchema,
    DataType,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
)
from odf_common.metadata.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    ExecuteTransform,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
)
from odf_common.metadata.fragments import Checkpoint, DataSlice, ExecuteTransformInput, OffsetInterval, SourceState
from odf_common.metadata.manifests import MetadataBlock
from odf_common.metadata.sources import FetchStepUrl, MergeStrategyAppend, ReadStepNdJson
from odf_common.metadata.transforms import SqlQueryStep, TransformInput, TransformSql
from odf_common.timestamp import Timestamp

NOON = Timestamp.parse("2020-01-01T12:00:00Z")
LATER = NOON.plus_seconds(60)
EARLIER = NOON.plus_seconds(-60)


def mh(text: str) -> Multihash:
    return sha3_256(text.encode())


def an_id(number: int) -> DatasetId:
    return DatasetId(bytes([number]) * 32)


def a_seed(kind: DatasetKind = DatasetKind.ROOT) -> Seed:
    return Seed(dataset_id=an_id(1), dataset_kind=kind)


def nullable(data_type: DataType) -> DataTypeOption:
    return DataTypeOption(inner=data_type)


SYSTEM_COLUMNS: dict[str, DataType] = {
    "offset": DataTypeInt64(),
    "op": DataTypeInt32(),
    "system_time": DataTypeTimestamp(),
    "event_time": nullable(DataTypeTimestamp()),
}


def a_schema(**columns: DataType) -> SetDataSchema:
    columns = columns or {"city": nullable(DataTypeString())}
    fields = tuple(DataField(name=name, type=data_type) for name, data_type in (SYSTEM_COLUMNS | columns).items())
    return SetDataSchema(schema_=DataSchema(fields=fields))


def a_slice(start: int, end: int) -> DataSlice:
    return DataSlice(
        logical_hash=mh(f"logical {start}"),
        physical_hash=mh(f"physical {start}"),
        offset_interval=OffsetInterval(start=start, end=end),
        size=100,
    )


def add_data(start: int | None = None, end: int | None = None, **fields: Any) -> AddData:
    """AddData with the slice `start..end`; prevOffset follows from it unless given."""
    if start is not None:
        fields = {"new_data": a_slice(start, end if end is not None else start)} | fields
        fields = {"prev_offset": start - 1 if start else None} | fields
    return AddData(**fields)


def a_checkpoint(name: str) -> Checkpoint:
    return Checkpoint(physical_hash=mh(name), size=1)


def a_state(value: str, source: str = "default") -> SourceState:
    return SourceState(source_name=source, kind="example.org/position", value=value)


def a_push_source(name: str = "default", **fields: Any) -> AddPushSource:
    return AddPushSource(**{"source_name": name, "read": ReadStepNdJson(), "merge": MergeStrategyAppend()} | fields)


def a_polling_source(**fields: Any) -> SetPollingSource:
    defaults = {"fetch": FetchStepUrl(url="https://example.org/"), "read": ReadStepNdJson()}
    return SetPollingSource(**defaults | {"merge": MergeStrategyAppend()} | fields)


def sql(*queries: tuple[str | None, str], **fields: Any) -> TransformSql:
    steps = tuple(SqlQueryStep(alias=alias, query=query) for alias, query in queries or [(None, "select 1")])
    return TransformSql(**{"engine": "spark", "queries": steps} | fields)


def a_transform(*inputs: int, **fields: Any) -> SetTransform:
    refs = tuple(TransformInput(dataset_ref=an_id(number), alias=f"in{number}") for number in inputs or (2, 3))
    return SetTransform(**{"inputs": refs, "transform": sql()} | fields)


def an_input(number: int, **fields: Any) -> ExecuteTransformInput:
    return ExecuteTransformInput(dataset_id=an_id(number), **fields)


def a_transaction(*inputs: ExecuteTransformInput, **fields: Any) -> ExecuteTransform:
    return ExecuteTransform(query_inputs=inputs or (an_input(2), an_input(3)), **fields)


def a_chain(*events: MetadataEvent, at: Timestamp = NOON) -> ChainState:
    """The state after these events, each checked. Seed is put in front."""
    chain = ChainState()
    for event in (a_seed(), *events) if not events or not isinstance(events[0], Seed) else events:
        block = next_block(chain, event, system_time=at)
        check_append(chain, block)
        chain = chain.followed_by(block, mh(f"block {block.sequence_number}"))
    return chain


def a_derivative(*events: MetadataEvent) -> ChainState:
    return a_chain(a_seed(DatasetKind.DERIVATIVE), *events)


def a_block(chain: ChainState, event: MetadataEvent, **fields: Any) -> MetadataBlock:
    """The next block, with some fields other than they should be."""
    return next_block(chain, event, system_time=fields.pop("system_time", LATER)).model_copy(update=fields)
