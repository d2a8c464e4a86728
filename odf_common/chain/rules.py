"""What a valid next block is: the append rules of ODF 0.36, one function each, and the few that were added since.

The order of the list is that in which the reference reports when several rules are broken: first what the block shows
by itself, then what the chain says against it. Rules of storage (the expected hash, existing objects, the
compare-and-swap of the ref) need I/O and live with it in `metadata_chain`.
"""

from __future__ import annotations

from collections.abc import Callable

from odf_common.chain import errors
from odf_common.chain.schema_evolution import incompatibility, inconsistency
from odf_common.chain.state import ChainState, logical_schema
from odf_common.errors import MalformedBytesError
from odf_common.identity.did import DatasetId
from odf_common.metadata.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
)
from odf_common.metadata.fragments import Checkpoint, ExecuteTransformInput
from odf_common.metadata.manifests import MetadataBlock
from odf_common.metadata.sources import FetchStepEthereumLogs, ReadStep
from odf_common.metadata.transforms import TransformSql

AppendRule = Callable[[ChainState, MetadataBlock], None]
"""Raises an AppendRefusedError when the block must not follow the chain; touches nothing."""


def check_append(chain: ChainState, block: MetadataBlock) -> None:
    """Raise the first error of APPEND_RULES, or return: the block may follow the chain."""
    for rule in APPEND_RULES:
        rule(chain, block)


# ---- What the block shows by itself


def chain_begins_with_seed(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 1: without a previous block, the event is Seed."""
    if block.prev_block_hash is None and not isinstance(block.event, Seed):
        raise errors.FirstBlockMustBeSeedError(f"the first block of a chain must be a Seed, not {block.event.kind}")


def seed_comes_only_first(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 1: Seed has no previous block."""
    if block.prev_block_hash is not None and isinstance(block.event, Seed):
        raise errors.AppendingSeedBlockToNonEmptyChainError("a chain has one Seed: its first block")


def data_event_says_something(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 8."""
    match block.event:
        case AddData() as event:
            said = (event.new_data, event.new_checkpoint, event.new_watermark, event.new_source_state)
        case ExecuteTransform() as event:
            said = (event.new_data, event.new_checkpoint, event.new_watermark, None)
        case _:
            return
    if not any(part is not None for part in said):
        raise errors.EmptyEventError(f"{event.kind} has neither data nor checkpoint, watermark or source state")


def offsets_continue(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 6: a slice starts behind `prevOffset`."""
    event = block.event
    if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
        expected = 0 if event.prev_offset is None else event.prev_offset + 1
        start = event.new_data.offset_interval.start
        if start != expected:
            raise errors.OffsetsAreNotSequentialError(
                f"slice starts at offset {start}, expected {expected} (prevOffset is {_shown(event.prev_offset)})"
            )


def offset_interval_is_not_inverted(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 6: intervals are closed, so they hold at least one record."""
    event = block.event
    if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
        interval = event.new_data.offset_interval
        if interval.end < interval.start:
            raise errors.OffsetIntervalInvertedError(
                f"slice ends at offset {interval.end}, before its start {interval.start}"
            )


def transform_is_normalized(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 14, for SetTransform and the preprocess step of sources."""
    match block.event:
        case SetTransform(transform=transform):
            pass
        case SetPollingSource(preprocess=TransformSql() as transform):
            pass
        case AddPushSource(preprocess=TransformSql() as transform):
            pass
        case _:
            return
    if transform.query is not None:
        raise errors.TransformNotNormalizedError("transform has `query`; a chain holds `queries` only")
    if not transform.queries:
        raise errors.TransformNotNormalizedError("transform has no queries")
    *named, last = transform.queries
    if last.alias is not None:
        raise errors.TransformNotNormalizedError(f"the last query is the output and has no alias, not {last.alias!r}")
    if any(step.alias is None for step in named):
        raise errors.TransformNotNormalizedError("every query but the last needs an alias")


def ethereum_source_names_a_chain(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 13: EthereumLogs needs chainId or nodeUrl."""
    match block.event:
        case SetPollingSource(fetch=FetchStepEthereumLogs(chain_id=None, node_url=None)):
            raise errors.SourceIncompleteError("an EthereumLogs source needs chainId or nodeUrl")


def read_step_has_one_schema(chain: ChainState, block: MetadataBlock) -> None:
    """Since ODF 0.38: a DDL schema or a native one."""
    event = block.event
    if isinstance(event, SetPollingSource | AddPushSource):
        read: ReadStep = event.read
        if read.ddl_schema is not None and read.schema_ is not None:
            raise errors.ReadSchemaAmbiguousError("the read step has both a DDL schema and a native one; keep one")


def transform_inputs_are_resolved(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 12."""
    if not isinstance(block.event, SetTransform):
        return
    if not block.event.inputs:
        raise errors.TransformInputsUnresolvedError("a transform needs at least one input")
    for given in block.event.inputs:
        if not isinstance(given.dataset_ref, DatasetId):
            raise errors.TransformInputsUnresolvedError(
                f"input {str(given.dataset_ref)!r} is not resolved: a chain names inputs by their id"
            )
        if given.alias is None:
            raise errors.TransformInputsUnresolvedError(f"input {given.dataset_ref} needs an alias")


def transform_inputs_are_distinct(chain: ChainState, block: MetadataBlock) -> None:
    """Since ODF 0.37: a dataset is an input once."""
    if isinstance(block.event, SetTransform):
        refs = [given.dataset_ref for given in block.event.inputs]
        repeated = next((ref for index, ref in enumerate(refs) if ref in refs[:index]), None)
        if repeated is not None:
            raise errors.TransformInputRepeatedError(f"input {repeated} is given twice")


# ---- What the chain says against it


def previous_block_is_known(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 3."""
    if block.prev_block_hash != chain.head:
        raise errors.PrevBlockNotFoundError(
            f"the block continues {_shown(block.prev_block_hash)}, "
            f"which is not in the chain with head {_shown(chain.head)}"
        )


def sequence_number_continues(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 2: 0 in the first block, then one more each."""
    if block.sequence_number != chain.next_sequence_number:
        raise errors.SequenceIntegrityError(chain.head, chain.sequence_number, block.sequence_number)


def system_time_does_not_go_back(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 4; equal is fine."""
    if chain.system_time is not None and block.system_time < chain.system_time:
        raise errors.SystemTimeIsNotMonotonicError(
            f"system time {block.system_time} lies before the previous block's {chain.system_time}"
        )


def watermark_is_kept_or_advanced(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 5."""
    event = block.event
    if not isinstance(event, AddData | ExecuteTransform) or chain.watermark is None:
        return
    if event.new_watermark is None or event.new_watermark < chain.watermark:
        raise errors.WatermarkIsNotMonotonicError(
            f"new watermark is {_shown(event.new_watermark)}, the chain already promised {chain.watermark}"
        )


def prev_offset_is_last_offset(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 7; the first data event is not compared with anything."""
    event = block.event
    if (
        isinstance(event, AddData | ExecuteTransform)
        and chain.has_data_event
        and event.prev_offset != chain.last_offset
    ):
        raise errors.PrevOffsetMismatchError(
            f"prevOffset is {_shown(event.prev_offset)}, the chain's last offset is {_shown(chain.last_offset)}"
        )


def event_fits_dataset_kind(chain: ChainState, block: MetadataBlock) -> None:
    """Sources and AddData belong to root datasets, transforms to derivative ones."""
    match block.event:
        case AddData() | SetPollingSource() | AddPushSource() | DisablePollingSource() | DisablePushSource():
            wanted = DatasetKind.ROOT
        case SetTransform() | ExecuteTransform():
            wanted = DatasetKind.DERIVATIVE
        case _:
            return
    if chain.dataset_kind != wanted:
        raise errors.WrongDatasetKindError(
            f"{block.event.kind} belongs to a {wanted} dataset, this one is {_shown(chain.dataset_kind)}"
        )


def source_kinds_do_not_mix(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 13."""
    if isinstance(block.event, SetPollingSource) and chain.ever_had_push_source:
        raise errors.SourceKindsMixedError("the dataset has push sources and cannot get a polling source")
    if isinstance(block.event, AddPushSource) and chain.ever_had_polling_source:
        raise errors.SourceKindsMixedError("the dataset has a polling source and cannot get push sources")


def push_source_changes_something(chain: ChainState, block: MetadataBlock) -> None:
    """Since ODF 0.37: a source may be replaced, not repeated."""
    event = block.event
    if isinstance(event, AddPushSource) and chain.push_source(event.source_name) == event:
        raise errors.PushSourceUnchangedError(f"push source {event.source_name!r} is already defined in this way")


def disabled_source_is_active(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 16: disabling marks the named source inactive, so there must be one."""
    match block.event:
        case DisablePollingSource() if chain.polling_source is None:
            raise errors.SourceNotActiveError("there is no active polling source to disable")
        case DisablePushSource(source_name=name) if chain.push_source(name) is None:
            raise errors.SourceNotActiveError(f"there is no active push source {name!r} to disable")


def data_follows_schema(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 9."""
    event = block.event
    if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None and chain.data_schema is None:
        raise errors.DataBeforeSchemaError("SetDataSchema event must be present before adding data")


def checkpoint_continues(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 10: each kind of event continues its own checkpoint."""
    event = block.event
    if not isinstance(event, AddData | ExecuteTransform):
        return
    last = chain.last_add_data if isinstance(event, AddData) else chain.last_transaction
    left = _hash_of(last.checkpoint) if last is not None else None
    if event.prev_checkpoint != left:
        raise errors.CheckpointMismatchError(
            f"prevCheckpoint is {_shown(event.prev_checkpoint)}, the last {event.kind} left {_shown(left)}"
        )


def data_event_changes_something(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 11."""
    match block.event:
        case AddData(new_data=None) as event:
            last = chain.last_add_data
            same = (event.new_watermark, event.new_source_state) == (
                (last.watermark, last.source_state) if last else (None, None)
            )
        case ExecuteTransform(new_data=None) as event:
            transaction = chain.last_transaction
            same = event.new_watermark == (transaction.watermark if transaction else None) and all(
                read.new_block_hash is None for read in event.query_inputs
            )
        case _:
            return
    if same and _hash_of(event.new_checkpoint) == event.prev_checkpoint:
        raise errors.NothingNewError(f"{event.kind} repeats checkpoint, watermark and state, and adds no data")


def transaction_has_inputs_of_transform(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 15: the inputs, in the order of the latest SetTransform."""
    if not isinstance(block.event, ExecuteTransform):
        return
    expected = _transform_inputs(chain)
    if expected is None:
        raise errors.TransactionInputsMismatchError("ExecuteTransform needs a SetTransform before it")
    given = [read.dataset_id for read in block.event.query_inputs]
    if given != expected:
        raise errors.TransactionInputsMismatchError(
            f"queryInputs are {[str(i) for i in given]}, the transform's inputs are {[str(i) for i in expected]}"
        )


def transaction_inputs_move_forward(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 15: what an input newly contributes differs from what it had, and offsets move with blocks only."""
    if not isinstance(block.event, ExecuteTransform):
        return
    for read in block.event.query_inputs:
        if read.new_block_hash is not None and read.new_block_hash == read.prev_block_hash:
            raise errors.TransactionInputNotMovedError(f"input {read.dataset_id}: newBlockHash equals prevBlockHash")
        if read.new_offset is not None and read.new_offset == read.prev_offset:
            raise errors.TransactionInputNotMovedError(f"input {read.dataset_id}: newOffset equals prevOffset")
        if read.new_offset is not None and read.new_block_hash is None:
            raise errors.TransactionInputNotMovedError(f"input {read.dataset_id}: newOffset needs a newBlockHash")


def transaction_continues_inputs(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 15: each input is read on from where the previous transaction left it."""
    if not isinstance(block.event, ExecuteTransform) or chain.last_transaction is None:
        return
    positions = {left.dataset_id: left for left in chain.last_transaction.inputs}
    for read in block.event.query_inputs:
        left = positions.get(read.dataset_id)
        if left is not None and _start(read) != _start(left):
            raise errors.TransactionNotContinuedError(
                f"input {read.dataset_id} starts behind block {_shown(read.prev_block_hash)} and offset "
                f"{_shown(read.prev_offset)}, the previous transaction ended at block {_shown(left.prev_block_hash)} "
                f"and offset {_shown(left.prev_offset)}"
            )


def schema_is_readable(chain: ChainState, block: MetadataBlock) -> None:
    """Rule 19 compares schemas, so they must be understood."""
    if isinstance(block.event, SetDataSchema):
        try:
            logical_schema(block.event)
        except MalformedBytesError as error:
            raise errors.SchemaUnreadableError(f"the schema cannot be read: {error}") from error


def schema_is_consistent(chain: ChainState, block: MetadataBlock) -> None:
    """Since ODF 0.37: names are distinct, Options do not nest."""
    if isinstance(block.event, SetDataSchema):
        reason = inconsistency(logical_schema(block.event))
        if reason is not None:
            raise errors.SchemaInconsistentError(f"the schema contradicts itself: {reason}")


def native_schema_changes_something(chain: ChainState, block: MetadataBlock) -> None:
    """Since ODF 0.37: a native schema is not repeated. (A bare Arrow one may be: 0.36 allows it.)"""
    event = block.event
    if isinstance(event, SetDataSchema) and chain.data_schema_is_native and event.schema_ == chain.data_schema:
        raise errors.DataSchemaUnchangedError("the schema is already the current one")


def schema_only_gains_columns(chain: ChainState, block: MetadataBlock) -> None:
    """Columns may be added, never removed, renamed or retyped (ODF 0.36, Schema Evolution)."""
    event = block.event
    if not isinstance(event, SetDataSchema) or chain.data_schema is None:
        return
    compare_optionality = chain.data_schema_is_native and event.schema_ is not None
    reason = incompatibility(chain.data_schema, logical_schema(event), compare_optionality=compare_optionality)
    if reason is not None:
        raise errors.SchemaNotCompatibleError(f"New schema is not compatible with the current schema: {reason}")


APPEND_RULES: tuple[AppendRule, ...] = (
    chain_begins_with_seed,
    seed_comes_only_first,
    data_event_says_something,
    offsets_continue,
    offset_interval_is_not_inverted,
    transform_is_normalized,
    ethereum_source_names_a_chain,
    read_step_has_one_schema,
    transform_inputs_are_resolved,
    transform_inputs_are_distinct,
    previous_block_is_known,
    sequence_number_continues,
    system_time_does_not_go_back,
    watermark_is_kept_or_advanced,
    prev_offset_is_last_offset,
    event_fits_dataset_kind,
    source_kinds_do_not_mix,
    push_source_changes_something,
    disabled_source_is_active,
    data_follows_schema,
    checkpoint_continues,
    data_event_changes_something,
    transaction_has_inputs_of_transform,
    transaction_inputs_move_forward,
    transaction_continues_inputs,
    schema_is_readable,
    schema_is_consistent,
    native_schema_changes_something,
    schema_only_gains_columns,
)


def _transform_inputs(chain: ChainState) -> list[object] | None:
    if chain.transform is not None:
        return [given.dataset_ref for given in chain.transform.inputs]
    if chain.last_transaction is not None:
        return [read.dataset_id for read in chain.last_transaction.inputs]
    return None


def _start(read: ExecuteTransformInput) -> tuple[object, object]:
    return read.prev_block_hash, read.prev_offset


def _hash_of(checkpoint: Checkpoint | None) -> object:
    return None if checkpoint is None else checkpoint.physical_hash


def _shown(value: object) -> str:
    return "absent" if value is None else str(value)
