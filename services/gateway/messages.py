"""The bodies of answers."""

from __future__ import annotations

from pydantic import Field

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.messages.base import Message
from odf_common.messages.block_appended import AppendedBlock
from odf_common.metadata.fragments import OffsetInterval
from odf_common.timestamp import Timestamp


class Problem(Message):
    """Why a request was refused: `error` for programs, `message` for people."""

    error: str
    message: str


class PositionRange(Message):
    """The positions `[start, next)` of a partition."""

    partition: int
    start: int
    next: int


class CommittedBlock(Message):
    """A block of a payload: it covers its positions, or is one of those before that. Others may have records there."""

    block_hash: Multihash
    sequence_number: int
    offset_interval: OffsetInterval | None = None
    """The records of the block; absent if it brings none."""
    num_records: int
    duplicates: int
    dead_letters: int
    derived: int = 0
    """Rows that no record stands for: the first of each pair of a correction, and what a snapshot retracts."""
    late: int = 0
    """Rows with an event time before the watermark that the dataset had."""
    watermark: Timestamp | None = None


class FirstTaken(Message):
    """Where a payload, or a part of it, was taken when it was sent the first time."""

    block_hash: Multihash | None = None
    """The block that covers the positions; absent if it lies too far back in the chain to be looked for."""
    positions: tuple[PositionRange, ...]


class UploadedFile(Message):
    """A payload in the upload area."""

    size: int  # bytes
    hash: Multihash
    """SHA2-256."""


class Uploaded(UploadedFile):
    """A payload that waits to be published."""

    upload_token: str
    """For `POST /{dataset}/ingest?uploadToken=`, once, within a week."""


class Published(Message):
    """A payload that is safely in its topic and, if `blocks` are given, in the dataset."""

    dataset: str
    dataset_id: DatasetId
    source: str
    topic: str
    positions: tuple[PositionRange, ...]
    messages: int
    records: int | None = Field(
        default=None,
        description="As counted when the payload was cut; what they hold was not looked at. Absent for uploads.",
    )
    upload: UploadedFile | None = Field(default=None, description="Of a payload that was too large for messages.")
    blocks: tuple[CommittedBlock, ...] | None = None
    duplicate_of: tuple[FirstTaken, ...] | None = Field(
        default=None, description="What had been taken before under the same event id, and was not taken again."
    )
    note: str | None = None


class DatasetItem(Message):
    """A dataset."""

    alias: str
    id: DatasetId
    kind: str
    head: Multihash | None = None
    newest_block: AppendedBlock | None = None
    topics: dict[str, str]
    """Push source → topic."""


class DatasetList(Message):
    """Datasets in the order of their aliases; `next` goes into `after` for those that follow."""

    datasets: tuple[DatasetItem, ...]
    next: str | None = None


class Readiness(Message):
    """Whether each thing that requests need answers: `ok`, or what is wrong."""

    ready: bool
    broker: str
    catalog: str
    blocks: str
    """Whether new blocks are listened for."""
