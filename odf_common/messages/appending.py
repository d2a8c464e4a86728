"""What is told about a block, made from the block itself."""

from __future__ import annotations

from odf_common.errors import MalformedBytesError
from odf_common.identity.did import DatasetId
from odf_common.messages.block_appended import AppendedBlock, SourceProgress
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData, ExecuteTransform, MetadataEvent
from odf_common.metadata.fragments import OffsetInterval
from odf_common.wire.encoded_block import EncodedBlock


def appended_block(dataset_id: DatasetId, alias: object, encoded: EncodedBlock) -> AppendedBlock:
    """What subscribers are told about a block of a dataset: the same whenever and from wherever it is asked."""
    block = encoded.block
    event = block.event
    data = event if isinstance(event, AddData | ExecuteTransform) else None
    interval = None if data is None or data.new_data is None else data.new_data.offset_interval
    return AppendedBlock(
        dataset_id=dataset_id,
        dataset_alias=str(alias),
        block_hash=encoded.hash,
        prev_block_hash=block.prev_block_hash,
        sequence_number=block.sequence_number,
        event_kind=event.kind,
        system_time=block.system_time,
        offset_interval=interval,
        num_records=_count(interval),
        watermark=None if data is None else data.new_watermark,
        source=_source(event),
    )


def _count(interval: OffsetInterval | None) -> int:
    return 0 if interval is None else max(interval.end - interval.start + 1, 0)


def _source(event: MetadataEvent) -> SourceProgress | None:
    """The positions that the block covers; None where there are none, or none that this program understands."""
    if not isinstance(event, AddData) or event.new_source_state is None:
        return None
    try:
        offsets = KafkaOffsets.of_state(event.new_source_state)
    except MalformedBytesError:
        return None
    if offsets is None:
        return None
    fields = {name: getattr(offsets, name) for name in KafkaOffsets.model_fields}
    return SourceProgress(name=event.new_source_state.source_name, **fields)
