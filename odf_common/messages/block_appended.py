"""The notification of a new block: a CloudEvents 1.0 event in structured JSON mode, topic `odf.blocks`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.messages.base import Message
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.fragments import OffsetInterval
from odf_common.timestamp import Timestamp

BLOCK_APPENDED = "org.opendatafabric.block.appended"
CLOUD_EVENTS_JSON = "application/cloudevents+json"


class SourceProgress(KafkaOffsets):
    """What the block covers of a push source's topic."""

    name: str


class AppendedBlock(Message):
    """What is told about a block."""

    dataset_id: DatasetId
    dataset_alias: str
    block_hash: Multihash
    prev_block_hash: Multihash | None = None
    sequence_number: int = Field(ge=0)
    event_kind: str
    system_time: Timestamp
    offset_interval: OffsetInterval | None = None
    """The records of the block; absent if it brings none."""
    num_records: int = Field(default=0, ge=0)
    watermark: Timestamp | None = None
    source: SourceProgress | None = None


class BlockAppended(Message):
    """A block became part of a dataset's chain. Key = dataset id, so a dataset's blocks come in their order.

    Sent at least once: `id` is the same each time, and so is `data.sequence_number`.
    """

    specversion: Literal["1.0"] = "1.0"
    id: str
    """`<dataset id>/<block hash>`."""
    source: str
    """`/datasets/<dataset id>`."""
    type: Literal["org.opendatafabric.block.appended"] = "org.opendatafabric.block.appended"
    subject: str
    """The dataset's alias when the block was appended."""
    time: Timestamp
    """When the block was appended: its system time."""
    datacontenttype: Literal["application/json"] = "application/json"
    data: AppendedBlock

    @classmethod
    def of(cls, block: AppendedBlock) -> BlockAppended:
        """The event that tells about a block."""
        return cls(
            id=f"{block.dataset_id}/{block.block_hash}",
            source=f"/datasets/{block.dataset_id}",
            subject=block.dataset_alias,
            time=block.system_time,
            data=block,
        )
