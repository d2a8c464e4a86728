"""What a chain says up to its head: the fold of its blocks, of a size that does not grow with their number."""

from __future__ import annotations

from typing import Any, Self

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.metadata.base import U64, Bool, Model
from odf_common.metadata.data_schema import DataSchema
from odf_common.metadata.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SetVocab,
)
from odf_common.metadata.fragments import Checkpoint, DatasetVocabulary, ExecuteTransformInput, SourceState
from odf_common.metadata.manifests import MetadataBlock
from odf_common.timestamp import Timestamp

DEFAULT_SOURCE_NAME = "default"


class LastAddData(Model):
    """What later AddData events are compared with."""

    checkpoint: Checkpoint | None = None
    watermark: Timestamp | None = None
    source_state: SourceState | None = None


class LastTransaction(Model):
    """What later ExecuteTransform events are compared with."""

    checkpoint: Checkpoint | None = None
    watermark: Timestamp | None = None
    inputs: tuple[ExecuteTransformInput, ...]


class ChainState(Model):
    """The state of a chain at `head`. The empty chain is `ChainState()`."""

    head: Multihash | None = None
    sequence_number: U64 | None = None
    system_time: Timestamp | None = None
    dataset_id: DatasetId | None = None
    dataset_kind: DatasetKind | None = None
    vocabulary: DatasetVocabulary = DatasetVocabulary()
    data_schema: DataSchema | None = None
    """The columns by their logical types, however the chain wrote them."""
    data_schema_is_native: Bool = False
    has_data_event: Bool = False
    last_offset: U64 | None = None
    watermark: Timestamp | None = None
    last_add_data: LastAddData | None = None
    last_transaction: LastTransaction | None = None
    transform: SetTransform | None = None
    ever_had_polling_source: Bool = False
    ever_had_push_source: Bool = False
    polling_source: SetPollingSource | None = None
    push_sources: tuple[AddPushSource, ...] = ()
    """Active push sources, in the order in which they were first added."""
    source_states: tuple[SourceState, ...] = ()
    """The latest state of each source by name; kept when later events carry none, so that no source loses its place."""

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return 0 if self.last_offset is None else self.last_offset + 1

    @property
    def next_sequence_number(self) -> int:
        """The sequence number of the next block."""
        return 0 if self.sequence_number is None else self.sequence_number + 1

    @property
    def sources(self) -> tuple[AddPushSource, ...]:
        """What data may come from: the active push sources, or the polling source in their form."""
        return self.push_sources if self.polling_source is None else (as_push_source(self.polling_source),)

    def source(self, name: str) -> AddPushSource | None:
        """The source of that name, whatever its kind."""
        return next((source for source in self.sources if source.source_name == name), None)

    def push_source(self, name: str) -> AddPushSource | None:
        """The active push source of that name."""
        return next((source for source in self.push_sources if source.source_name == name), None)

    def source_state(self, name: str) -> SourceState | None:
        """The latest state of the source of that name."""
        return next((state for state in self.source_states if state.source_name == name), None)

    def followed_by(self, block: MetadataBlock, block_hash: Multihash) -> Self:
        """The state with one more block. Checks nothing: that is what `rules` are for."""
        return self.model_copy(
            update={
                "head": block_hash,
                "sequence_number": block.sequence_number,
                "system_time": block.system_time,
                **_changes(self, block.event),
            }
        )


def as_push_source(polling: SetPollingSource) -> AddPushSource:
    """What becomes of fetched data is the same as with a push source; a polling source has no name of its own."""
    return AddPushSource(
        source_name=DEFAULT_SOURCE_NAME, read=polling.read, preprocess=polling.preprocess, merge=polling.merge
    )


def next_block(chain: ChainState, event: MetadataEvent, *, system_time: Timestamp) -> MetadataBlock:
    """The block that appends an event to the chain."""
    return MetadataBlock(
        system_time=system_time,
        prev_block_hash=chain.head,
        sequence_number=chain.next_sequence_number,
        event=event,
    )


def _changes(chain: ChainState, event: MetadataEvent) -> dict[str, Any]:
    """The fields that an event sets."""
    match event:
        case Seed():
            return {"dataset_id": event.dataset_id, "dataset_kind": event.dataset_kind}
        case AddData():
            return _after_data(event) | _after_add_data(chain, event)
        case ExecuteTransform():
            return _after_data(event) | {
                "last_transaction": LastTransaction(
                    checkpoint=event.new_checkpoint,
                    watermark=event.new_watermark,
                    inputs=_input_positions(event),
                )
            }
        case SetDataSchema():
            return {"data_schema": logical_schema(event), "data_schema_is_native": event.schema_ is not None}
        case SetVocab():
            return {"vocabulary": DatasetVocabulary(**event.model_dump(exclude={"kind"}, exclude_none=True))}
        case SetTransform():
            return {"transform": event}
        case SetPollingSource():
            return {"polling_source": event, "ever_had_polling_source": True}
        case DisablePollingSource():
            return {"polling_source": None}
        case AddPushSource():
            return {"push_sources": _with_source(chain.push_sources, event), "ever_had_push_source": True}
        case DisablePushSource():
            return {"push_sources": tuple(s for s in chain.push_sources if s.source_name != event.source_name)}
        case _:
            return {}


def _after_data(event: AddData | ExecuteTransform) -> dict[str, Any]:
    last_offset = event.prev_offset if event.new_data is None else event.new_data.offset_interval.end
    return {"has_data_event": True, "last_offset": last_offset, "watermark": event.new_watermark}


def _after_add_data(chain: ChainState, event: AddData) -> dict[str, Any]:
    state = event.new_source_state
    last = LastAddData(checkpoint=event.new_checkpoint, watermark=event.new_watermark, source_state=state)
    if state is None:
        return {"last_add_data": last}
    others = tuple(known for known in chain.source_states if known.source_name != state.source_name)
    return {"last_add_data": last, "source_states": (*others, state)}


def _input_positions(event: ExecuteTransform) -> tuple[ExecuteTransformInput, ...]:
    """How far each input has been read: an input that did not move keeps its previous position."""
    return tuple(
        ExecuteTransformInput(
            dataset_id=read.dataset_id,
            prev_block_hash=read.new_block_hash or read.prev_block_hash,
            prev_offset=read.prev_offset if read.new_offset is None else read.new_offset,
        )
        for read in event.query_inputs
    )


def _with_source(sources: tuple[AddPushSource, ...], added: AddPushSource) -> tuple[AddPushSource, ...]:
    if all(source.source_name != added.source_name for source in sources):
        return (*sources, added)
    return tuple(added if source.source_name == added.source_name else source for source in sources)


def logical_schema(event: SetDataSchema) -> DataSchema:
    """The columns that a SetDataSchema defines; MalformedBytesError when a bare Arrow schema cannot be read."""
    if event.schema_ is not None:
        return event.schema_
    from odf_common.data.arrow_schema import logical_schema as of_arrow

    assert event.raw_arrow_schema is not None
    return of_arrow(event.raw_arrow_schema)
