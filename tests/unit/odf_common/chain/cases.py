"""What may be appended to which chain, as a table: at least one accepted and one refused block for each rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from odf_common.chain import errors
from odf_common.chain.state import ChainState
from odf_common.errors import AppendRefusedError
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.base import ExtraAttributes
from odf_common.metadata.data_schema import (
    DataField,
    DataSchema,
    DataTypeInt64,
    DataTypeList,
    DataTypeString,
    DataTypeStruct,
    DataTypeTimestamp,
    TimeUnit,
)
from odf_common.metadata.events import (
    AddData,
    DisablePollingSource,
    DisablePushSource,
    MetadataEvent,
    SetDataSchema,
    SetInfo,
)
from odf_common.metadata.manifests import MetadataBlock
from odf_common.metadata.sources import FetchStepEthereumLogs, MergeStrategyLedger, ReadStepCsv
from odf_common.metadata.transforms import TransformInput
from tests.unit.odf_common.chain.builders import (
    EARLIER,
    LATER,
    NOON,
    a_block,
    a_chain,
    a_checkpoint,
    a_derivative,
    a_polling_source,
    a_push_source,
    a_schema,
    a_seed,
    a_slice,
    a_state,
    a_transaction,
    a_transform,
    add_data,
    an_id,
    an_input,
    mh,
    nullable,
    sql,
)

Refusal = type[AppendRefusedError]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A block after a chain, and the error it must raise; None where it must be accepted."""

    name: str
    chain: ChainState
    block: MetadataBlock
    refusal: Refusal | None

    def __str__(self) -> str:
        return self.name


def case(
    name: str, chain: ChainState, event: MetadataEvent, refusal: Refusal | None = None, **block_fields: Any
) -> Case:
    return Case(name=name, chain=chain, block=a_block(chain, event, **block_fields), refusal=refusal)


EMPTY = ChainState()
INFO = SetInfo(description="d")
WITH_SCHEMA = a_chain(a_schema())
WITH_DATA = a_chain(a_schema(), add_data(0, 9, new_watermark=NOON))
WITH_CHECKPOINT = a_chain(a_schema(), add_data(0, 9, new_checkpoint=a_checkpoint("c1"), new_source_state=a_state("1")))
DERIVATIVE = a_derivative(a_schema(), a_transform(2, 3))
FIRST_TRANSACTION = a_transaction(
    an_input(2, new_block_hash=mh("b2"), new_offset=5), an_input(3), new_data=a_slice(0, 1)
)
DERIVED = a_derivative(a_schema(), a_transform(2, 3), FIRST_TRANSACTION)


def derived(two: dict[str, Any], three: dict[str, Any], **fields: Any) -> MetadataEvent:
    return a_transaction(an_input(2, **two), an_input(3, **three), **{"prev_offset": 1} | fields)


AT_B2 = {"prev_block_hash": mh("b2"), "prev_offset": 5}

SEED_CASES = [
    case("seed begins a chain", EMPTY, a_seed()),
    case("something else does not", EMPTY, INFO, errors.FirstBlockMustBeSeedError),
    case("a second seed", a_chain(), a_seed(), errors.AppendingSeedBlockToNonEmptyChainError),
    case("first block numbered 1", EMPTY, a_seed(), errors.SequenceIntegrityError, sequence_number=1),
]

LINK_CASES = [
    case("the next block", a_chain(), INFO),
    case("an unknown previous block", a_chain(), INFO, errors.PrevBlockNotFoundError, prev_block_hash=mh("?")),
    case("a repeated number", a_chain(), INFO, errors.SequenceIntegrityError, sequence_number=0),
    case("a skipped number", a_chain(), INFO, errors.SequenceIntegrityError, sequence_number=2),
    case("the same system time", a_chain(), INFO, system_time=NOON),
    case("an earlier system time", a_chain(), INFO, errors.SystemTimeIsNotMonotonicError, system_time=EARLIER),
]

WATERMARK_CASES = [
    case("an equal watermark", WITH_DATA, add_data(10, new_watermark=NOON)),
    case("a later watermark without data", WITH_DATA, add_data(prev_offset=9, new_watermark=LATER)),
    case("an earlier watermark", WITH_DATA, add_data(10, new_watermark=EARLIER), errors.WatermarkIsNotMonotonicError),
    case("a dropped watermark", WITH_DATA, add_data(10), errors.WatermarkIsNotMonotonicError),
    case(
        "a dropped watermark in a transaction",
        a_derivative(a_schema(), a_transform(), a_transaction(new_watermark=NOON)),
        a_transaction(new_data=a_slice(0, 1)),
        errors.WatermarkIsNotMonotonicError,
    ),
]

OFFSET_CASES = [
    case("a slice behind the last", WITH_DATA, add_data(10, 19, new_watermark=NOON)),
    case("a first slice", WITH_SCHEMA, add_data(0, 9)),
    case(
        "a first slice that starts at 1",
        WITH_SCHEMA,
        AddData(new_data=a_slice(1, 9)),
        errors.OffsetsAreNotSequentialError,
    ),
    case(
        "a slice with a gap",
        WITH_DATA,
        add_data(11, 19, prev_offset=9, new_watermark=NOON),
        errors.OffsetsAreNotSequentialError,
    ),
    case(
        "a slice that ends before it starts",
        WITH_DATA,
        add_data(10, 9, new_watermark=NOON),
        errors.OffsetIntervalInvertedError,
    ),
    case("prevOffset ahead of the chain", WITH_DATA, add_data(11, new_watermark=NOON), errors.PrevOffsetMismatchError),
    case("prevOffset forgotten", WITH_DATA, add_data(new_watermark=LATER), errors.PrevOffsetMismatchError),
    case("prevOffset of the very first data event", WITH_SCHEMA, add_data(10, 19)),
    case(
        "prevOffset after an event without data",
        a_chain(a_schema(), add_data(0, 4, new_watermark=NOON), add_data(prev_offset=4, new_watermark=LATER)),
        add_data(5, 6, new_watermark=LATER),
    ),
]

DATA_CASES = [
    case("an empty AddData", WITH_DATA, AddData(), errors.EmptyEventError),
    case("an AddData with nothing but prevOffset", WITH_DATA, AddData(prev_offset=9), errors.EmptyEventError),
    case(
        "an AddData with nothing but extra attributes",
        WITH_SCHEMA,
        AddData(extra=ExtraAttributes.of({"example.org/a": 1})),
        errors.EmptyEventError,
    ),
    case("a transaction that only moves inputs", DERIVATIVE, a_transaction(), errors.EmptyEventError),
    case("data before any schema", a_chain(), add_data(0, 9), errors.DataBeforeSchemaError),
    case("a watermark before any schema", a_chain(), add_data(new_watermark=NOON)),
    case("a watermark again", WITH_DATA, add_data(prev_offset=9, new_watermark=NOON), errors.NothingNewError),
    case(
        "the same source state again",
        WITH_CHECKPOINT,
        add_data(
            prev_offset=9,
            prev_checkpoint=mh("c1"),
            new_checkpoint=a_checkpoint("c1"),
            new_source_state=a_state("1"),
        ),
        errors.NothingNewError,
    ),
    case(
        "a new source state alone",
        WITH_CHECKPOINT,
        add_data(
            prev_offset=9,
            prev_checkpoint=mh("c1"),
            new_checkpoint=a_checkpoint("c1"),
            new_source_state=a_state("2"),
        ),
    ),
    case(
        "a new checkpoint", WITH_CHECKPOINT, add_data(10, prev_checkpoint=mh("c1"), new_checkpoint=a_checkpoint("c2"))
    ),
    case("a forgotten checkpoint", WITH_CHECKPOINT, add_data(10), errors.CheckpointMismatchError),
    case("another checkpoint", WITH_CHECKPOINT, add_data(10, prev_checkpoint=mh("c?")), errors.CheckpointMismatchError),
    case(
        "a checkpoint from nowhere", WITH_SCHEMA, add_data(0, prev_checkpoint=mh("c1")), errors.CheckpointMismatchError
    ),
    case(
        "no checkpoint after one that was dropped",
        a_chain(a_schema(), add_data(0, new_checkpoint=a_checkpoint("c1")), add_data(1, prev_checkpoint=mh("c1"))),
        add_data(2),
    ),
]

KIND_CASES = [
    case("data in a derivative dataset", DERIVATIVE, add_data(0), errors.WrongDatasetKindError),
    case("a push source in a derivative dataset", DERIVATIVE, a_push_source(), errors.WrongDatasetKindError),
    case("a polling source in a derivative dataset", DERIVATIVE, a_polling_source(), errors.WrongDatasetKindError),
    case("a transform in a root dataset", a_chain(), a_transform(), errors.WrongDatasetKindError),
    case("a transaction in a root dataset", WITH_SCHEMA, FIRST_TRANSACTION, errors.WrongDatasetKindError),
]

SOURCE_CASES = [
    case("several push sources", a_chain(a_push_source("a")), a_push_source("b")),
    case("a polling source set again", a_chain(a_polling_source()), a_polling_source()),
    case(
        "a polling source beside a push source",
        a_chain(a_push_source()),
        a_polling_source(),
        errors.SourceKindsMixedError,
    ),
    case(
        "a push source beside a polling source",
        a_chain(a_polling_source()),
        a_push_source(),
        errors.SourceKindsMixedError,
    ),
    case(
        "a polling source after a disabled push source",
        a_chain(a_push_source(), DisablePushSource(source_name="default")),
        a_polling_source(),
        errors.SourceKindsMixedError,
    ),
    case("a push source repeated", a_chain(a_push_source()), a_push_source(), errors.PushSourceUnchangedError),
    case(
        "a push source changed", a_chain(a_push_source()), a_push_source(merge=MergeStrategyLedger(primary_key=("a",)))
    ),
    case(
        "a push source added again after it was disabled",
        a_chain(a_push_source(), DisablePushSource(source_name="default")),
        a_push_source(),
    ),
    case("a push source disabled", a_chain(a_push_source()), DisablePushSource(source_name="default")),
    case(
        "an unknown push source disabled",
        a_chain(a_push_source()),
        DisablePushSource(source_name="other"),
        errors.SourceNotActiveError,
    ),
    case("a polling source disabled", a_chain(a_polling_source()), DisablePollingSource()),
    case("no polling source disabled", a_chain(), DisablePollingSource(), errors.SourceNotActiveError),
    case("EthereumLogs of a chain", a_chain(), a_polling_source(fetch=FetchStepEthereumLogs(chain_id=0))),
    case("EthereumLogs of a node", a_chain(), a_polling_source(fetch=FetchStepEthereumLogs(node_url="wss://x"))),
    case(
        "EthereumLogs of nothing",
        a_chain(),
        a_polling_source(fetch=FetchStepEthereumLogs()),
        errors.SourceIncompleteError,
    ),
    case(
        "a read step with two schemas",
        a_chain(),
        a_push_source(read=ReadStepCsv(ddl_schema=("a INT",), schema_=DataSchema(fields=()))),
        errors.ReadSchemaAmbiguousError,
    ),
    case("a preprocess step", a_chain(), a_push_source(preprocess=sql(("a", "select 1"), (None, "select * from a")))),
    case(
        "a preprocess step of a push source that is not normalized",
        a_chain(),
        a_push_source(preprocess=sql(query="select 1", queries=None)),
        errors.TransformNotNormalizedError,
    ),
    case(
        "a preprocess step of a polling source that is not normalized",
        a_chain(),
        a_polling_source(preprocess=sql(query="select 1", queries=None)),
        errors.TransformNotNormalizedError,
    ),
]

SET = a_derivative()

TRANSFORM_CASES = [
    case("a transform", SET, a_transform()),
    case("a transform set again", DERIVED, a_transform(2, 3)),
    case("no inputs", SET, a_transform(inputs=()), errors.TransformInputsUnresolvedError),
    case(
        "an input by alias",
        SET,
        a_transform(inputs=(TransformInput(dataset_ref=DatasetAlias.parse("x"), alias="x"),)),
        errors.TransformInputsUnresolvedError,
    ),
    case(
        "an input without alias",
        SET,
        a_transform(inputs=(TransformInput(dataset_ref=an_id(2)),)),
        errors.TransformInputsUnresolvedError,
    ),
    case("an input twice", SET, a_transform(2, 3, 2), errors.TransformInputRepeatedError),
    case("`query` in a chain", SET, a_transform(transform=sql(query="select 1")), errors.TransformNotNormalizedError),
    case("no queries", SET, a_transform(transform=sql(queries=())), errors.TransformNotNormalizedError),
    case(
        "a last query with alias",
        SET,
        a_transform(transform=sql(("a", "select 1"))),
        errors.TransformNotNormalizedError,
    ),
    case(
        "an earlier query without alias",
        SET,
        a_transform(transform=sql((None, "select 1"), (None, "select 2"))),
        errors.TransformNotNormalizedError,
    ),
]

TRANSACTION_CASES = [
    case("a first transaction", DERIVATIVE, FIRST_TRANSACTION),
    case(
        "a second one, in which one input stood still",
        DERIVED,
        derived(AT_B2, {"new_block_hash": mh("b3")}, new_data=a_slice(2, 3)),
    ),
    case(
        "a transaction without transform",
        a_derivative(a_schema()),
        FIRST_TRANSACTION,
        errors.TransactionInputsMismatchError,
    ),
    case(
        "inputs in another order",
        DERIVATIVE,
        a_transaction(an_input(3), an_input(2), new_watermark=NOON),
        errors.TransactionInputsMismatchError,
    ),
    case(
        "an input is missing",
        DERIVATIVE,
        a_transaction(an_input(2), new_watermark=NOON),
        errors.TransactionInputsMismatchError,
    ),
    case(
        "an input reads from another block",
        DERIVED,
        derived({"prev_block_hash": mh("b?"), "prev_offset": 5}, {}, new_watermark=NOON),
        errors.TransactionNotContinuedError,
    ),
    case(
        "an input reads from another offset",
        DERIVED,
        derived({"prev_block_hash": mh("b2"), "prev_offset": 4}, {}, new_watermark=NOON),
        errors.TransactionNotContinuedError,
    ),
    case(
        "an input forgets where it was",
        DERIVED,
        derived({}, {}, new_watermark=NOON),
        errors.TransactionNotContinuedError,
    ),
    case(
        "an input moves to the block where it is",
        DERIVED,
        derived(AT_B2 | {"new_block_hash": mh("b2")}, {}, new_watermark=NOON),
        errors.TransactionInputNotMovedError,
    ),
    case(
        "an input moves to the offset where it is",
        DERIVED,
        derived(AT_B2 | {"new_block_hash": mh("b9"), "new_offset": 5}, {}, new_watermark=NOON),
        errors.TransactionInputNotMovedError,
    ),
    case(
        "an offset moves without a block",
        DERIVED,
        derived(AT_B2 | {"new_offset": 6}, {}, new_watermark=NOON),
        errors.TransactionInputNotMovedError,
    ),
    case(
        "a transaction that changes nothing",
        a_derivative(a_schema(), a_transform(), a_transaction(new_watermark=NOON)),
        a_transaction(new_watermark=NOON),
        errors.NothingNewError,
    ),
    case(
        "the same watermark, but an input moved",
        a_derivative(a_schema(), a_transform(), a_transaction(new_watermark=NOON)),
        a_transaction(an_input(2, new_block_hash=mh("b2")), an_input(3), new_watermark=NOON),
    ),
    case(
        "a transaction continues its own checkpoint",
        a_derivative(a_schema(), a_transform(), a_transaction(new_checkpoint=a_checkpoint("c1"))),
        a_transaction(new_data=a_slice(0, 1)),
        errors.CheckpointMismatchError,
    ),
]

MEMBERS = DataTypeStruct(fields=(DataField(name="x", type=nullable(DataTypeInt64())),))
MORE_MEMBERS = DataTypeStruct(fields=(*MEMBERS.fields, DataField(name="y", type=nullable(DataTypeInt64()))))
REPEATED_MEMBERS = DataTypeStruct(fields=MEMBERS.fields * 2)
NESTED = a_chain(a_schema(s=MEMBERS, l=DataTypeList(item_type=DataTypeInt64())))


def with_repeated_last(event: SetDataSchema) -> SetDataSchema:
    assert event.schema_ is not None
    fields = event.schema_.fields
    return SetDataSchema(schema_=DataSchema(fields=(*fields, fields[-1])))


SCHEMA_CASES = [
    case("an added nullable column", WITH_DATA, a_schema(city=nullable(DataTypeString()), n=nullable(DataTypeInt64()))),
    case(
        "an added required column",
        WITH_DATA,
        a_schema(city=nullable(DataTypeString()), n=DataTypeInt64()),
        errors.SchemaNotCompatibleError,
    ),
    case(
        "a removed or renamed column",
        WITH_DATA,
        a_schema(town=nullable(DataTypeString())),
        errors.SchemaNotCompatibleError,
    ),
    case("a retyped column", WITH_DATA, a_schema(city=nullable(DataTypeInt64())), errors.SchemaNotCompatibleError),
    case("a column became required", WITH_DATA, a_schema(city=DataTypeString()), errors.SchemaNotCompatibleError),
    case("the native schema repeated", WITH_DATA, a_schema(), errors.DataSchemaUnchangedError),
    case(
        "an attribute added",
        WITH_DATA,
        SetDataSchema(schema_=DataSchema(fields=a_schema().schema_.fields, extra=ExtraAttributes.of({"a.b/c": 1}))),  # type: ignore[union-attr]
    ),
    case(
        "columns in another order",
        a_chain(a_schema(a=nullable(DataTypeInt64()), b=nullable(DataTypeInt64()))),
        a_schema(b=nullable(DataTypeInt64()), a=nullable(DataTypeInt64())),
    ),
    case(
        "an added column beside a retyped one",
        WITH_DATA,
        a_schema(city=nullable(DataTypeInt64()), n=nullable(DataTypeInt64())),
        errors.SchemaNotCompatibleError,
    ),
    case(
        "a default spelled out",
        a_chain(a_schema(t=DataTypeTimestamp())),
        a_schema(t=DataTypeTimestamp(unit=TimeUnit.MILLISECOND, timezone="UTC")),
    ),
    case(
        "another time unit",
        a_chain(a_schema(t=DataTypeTimestamp())),
        a_schema(t=DataTypeTimestamp(unit=TimeUnit.NANOSECOND)),
        errors.SchemaNotCompatibleError,
    ),
    case("a member added to a struct", NESTED, a_schema(s=MORE_MEMBERS, l=DataTypeList(item_type=DataTypeInt64()))),
    case(
        "a member removed from a struct",
        NESTED,
        a_schema(s=DataTypeStruct(fields=()), l=DataTypeList(item_type=DataTypeInt64())),
        errors.SchemaNotCompatibleError,
    ),
    case(
        "a repeated column",
        WITH_DATA,
        with_repeated_last(a_schema(city=nullable(DataTypeString()))),
        errors.SchemaInconsistentError,
    ),
    case(
        "a repeated member of an added struct",
        WITH_DATA,
        a_schema(city=nullable(DataTypeString()), l=nullable(DataTypeList(item_type=REPEATED_MEMBERS))),
        errors.SchemaInconsistentError,
    ),
    case(
        "an Option of an Option in the first schema",
        a_chain(),
        a_schema(city=nullable(nullable(DataTypeString()))),
        errors.SchemaInconsistentError,
    ),
    case(
        "list items retyped",
        NESTED,
        a_schema(s=MEMBERS, l=DataTypeList(item_type=DataTypeString())),
        errors.SchemaNotCompatibleError,
    ),
    case(
        "a bare schema that is not one",
        a_chain(),
        SetDataSchema(raw_arrow_schema=b"junk"),
        errors.SchemaUnreadableError,
    ),
]

CASES = [
    *SEED_CASES,
    *LINK_CASES,
    *WATERMARK_CASES,
    *OFFSET_CASES,
    *DATA_CASES,
    *KIND_CASES,
    *SOURCE_CASES,
    *TRANSFORM_CASES,
    *TRANSACTION_CASES,
    *SCHEMA_CASES,
]
