"""What the catalog holds, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from odf_common.identity.did import AccountId, DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import AccountName, DatasetAlias
from odf_common.metadata.events import DatasetKind
from odf_common.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountEntry:
    """An account."""

    id: AccountId
    name: AccountName
    created_at: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetEntry:
    """A dataset and where it lies: `location` is a folder below the repository's root, or a location of its own."""

    id: DatasetId
    alias: DatasetAlias
    kind: DatasetKind
    location: str
    created_at: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class RefMove:
    """A ref of a dataset goes from one block (None: it does not exist yet) to another."""

    dataset_id: DatasetId
    name: str
    expected: Multihash | None
    new: Multihash


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRecord:
    """A change to be told. `kind` names what happened, `payload` is a JSON object."""

    dataset_id: DatasetId
    kind: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A recorded change. Ids grow in the order in which the changes became visible."""

    id: int
    record: JournalRecord
    created_at: Timestamp


class SourceSettings(BaseModel):
    """How a source is read. `partitions` counts when the topic is created, the others whenever they change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    partitions: int = Field(default=1, ge=1, le=10_000)
    batch_time_s: float = Field(default=0.5, ge=0, le=86_400)
    """How long a batch may wait to become larger, counted from the batch before; 0 is as fast as it goes."""
    batch_rows: int = Field(default=100_000, ge=1, le=10_000_000)
    batch_bytes: int = Field(default=64 << 20, ge=1 << 10, le=1 << 30)
    watermark_delay_s: float = Field(default=0.0, ge=0)
    """How far the watermark stays behind the largest event time."""
    max_ahead_s: float | None = Field(default=None, ge=0)
    """Event times further ahead of the system time than this do not move the watermark; None lets all of them."""
    accept_new_columns: bool = True
    """Whether columns that records bring, and no read schema declares, become columns of the dataset."""
    event_id_window_s: float = Field(default=86_400.0, ge=0, le=366 * 86_400.0)
    """For how long a message with the event id of an earlier one is a duplicate; 0 does not look at ids."""
    enabled: bool = True
    """Off: the source is not read until it is switched on again, and then goes on where it was."""
    poll_every_s: float | None = Field(default=None, ge=1, le=366 * 86_400.0)
    """How often a polling source is polled."""
    poll_cron: str | None = Field(default=None, max_length=200)
    """When a polling source is polled, in UTC: a cron expression instead of an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSourceBinding:
    """The topic of a push source and how it is read. `problem` says why it is not read at the moment."""

    dataset_id: DatasetId
    source_name: str
    topic: str
    settings: SourceSettings
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The right to play a part that only one process may play: valid until another process takes a later one."""

    name: str
    number: int


DATASET_CREATED = "DatasetCreated"
DATASET_RENAMED = "DatasetRenamed"
DATASET_DELETED = "DatasetDeleted"
REF_MOVED = "RefMoved"
PUSH_SOURCE_BOUND = "PushSourceBound"
