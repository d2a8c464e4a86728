"""What the catalog holds, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


DATASET_CREATED = "DatasetCreated"
DATASET_RENAMED = "DatasetRenamed"
DATASET_DELETED = "DatasetDeleted"
REF_MOVED = "RefMoved"
