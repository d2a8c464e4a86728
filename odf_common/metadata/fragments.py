"""The smaller parts that events are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.metadata.base import U64, Model, spelled
from odf_common.timestamp import Timestamp


class OffsetInterval(Model):
    """A closed interval of record offsets: both ends belong to it."""

    start: U64
    end: U64


class DataSlice(Model):
    """A Parquet file of the dataset, `size` bytes long."""

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: U64


class Checkpoint(Model):
    """An opaque file in which an engine keeps its state, `size` bytes long."""

    physical_hash: Multihash
    size: U64


class SourceState(Model):
    """How far a source was read; `kind` says how `value` is to be understood."""

    source_name: str
    kind: str
    value: str


class ExecuteTransformInput(Model):
    """What a transaction consumed of an input: half-open intervals `(prev, new]` of blocks and of offsets."""

    dataset_id: DatasetId
    prev_block_hash: Multihash | None = None
    new_block_hash: Multihash | None = None
    prev_offset: U64 | None = None
    new_offset: U64 | None = None


class DatasetVocabulary(Model):
    """The names of the system columns."""

    offset_column: str = "offset"
    operation_type_column: str = "op"
    system_time_column: str = "system_time"
    event_time_column: str = "event_time"


class Watermark(Model):
    """A watermark, and when it was known."""

    system_time: Timestamp
    event_time: Timestamp


class AttachmentEmbedded(Model):
    """A text that travels with the metadata, such as a README."""

    path: str
    content: str


class AttachmentsEmbedded(Model):
    """Attachments kept in the block itself."""

    kind: Literal["Embedded"] = "Embedded"
    items: tuple[AttachmentEmbedded, ...]


Attachments = Annotated[AttachmentsEmbedded, spelled(AttachmentsEmbedded)]
