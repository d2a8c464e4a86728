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
    """A block that covers published positions. It may hold records of other publishers, too."""

    block_hash: Multihash
    sequence_number: int
    offset_interval: OffsetInterval | None = None
    """The records of the block; absent if it brings none."""
    num_records: int
    duplicates: int
    dead_letters: int
    watermark: Timestamp | None = None


class Published(Message):
    """A payload that is safely in its topic and, if `blocks` are given, in the dataset."""

    dataset: str
    dataset_id: DatasetId
    source: str
    topic: str
    positions: tuple[PositionRange, ...]
    messages: int
    records: int = Field(description="As counted when the payload was cut; what they hold was not looked at.")
    blocks: tuple[CommittedBlock, ...] | None = None
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
