"""Changing the catalog: everything within one transaction happens together with its journal records, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable

from sqlalchemy import ColumnElement, Connection, delete, insert, update

from odf_common.catalog import queries
from odf_common.catalog.errors import FencedError, IdTakenError, NameTakenError, TopicTakenError
from odf_common.catalog.records import (
    DATASET_CREATED,
    DATASET_DELETED,
    DATASET_RENAMED,
    PUSH_SOURCE_BOUND,
    REF_MOVED,
    DatasetEntry,
    Epoch,
    JournalRecord,
    PushSourceBinding,
)
from odf_common.catalog.tables import ACCOUNTS, DATASETS, EPOCHS, JOURNAL, PUSH_SOURCES, REFS
from odf_common.errors import RefCASFailedError
from odf_common.identity.did import AccountId, DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import AccountName, DatasetAlias, DatasetRef
from odf_common.metadata.events import DatasetKind
from odf_common.storage.layout import check_ref_fits, check_ref_name
from odf_common.timestamp import Timestamp


class CatalogTransaction:
    """The open transaction of `Catalog.begin`. No other writer changes the catalog until it ends."""

    def __init__(self, connection: Connection, clock: Callable[[], Timestamp]) -> None:
        self._connection = connection
        self._clock = clock

    def dataset(self, ref: DatasetRef) -> DatasetEntry:
        """A dataset by id or alias; NotFoundError if there is none."""
        return queries.dataset(self._connection, ref)

    def ref(self, dataset_id: DatasetId, name: str) -> Multihash | None:
        """Where a ref stands; None if it or the dataset does not exist."""
        return queries.ref(self._connection, dataset_id, name)

    def add_account(self, account_id: AccountId, name: AccountName) -> None:
        """Make an account known; IdTakenError or NameTakenError if it or its name is."""
        if (known := queries.find_account(self._connection, account_id)) is not None:
            raise IdTakenError(account_id, name=known.name)
        if (holder := queries.find_account(self._connection, name)) is not None:
            raise NameTakenError(name, taken_by=holder.id)
        values = {"id": str(account_id), "name": name.text, "name_folded": name.folded, "created_at": self._now()}
        self._connection.execute(insert(ACCOUNTS).values(values))

    def add_dataset(self, dataset_id: DatasetId, alias: DatasetAlias, kind: DatasetKind, *, location: str) -> None:
        """Make a dataset known; IdTakenError or NameTakenError if it or its alias is."""
        if (known := queries.find_dataset(self._connection, dataset_id)) is not None:
            raise IdTakenError(dataset_id, name=known.alias)
        self._check_free(alias, for_id=dataset_id)
        self._connection.execute(
            insert(DATASETS).values(
                id=str(dataset_id), kind=kind.value, location=location, created_at=self._now(), **_names(alias)
            )
        )
        self._tell(dataset_id, DATASET_CREATED, alias=str(alias), kind=kind.value)

    def rename_dataset(self, dataset_id: DatasetId, alias: DatasetAlias) -> None:
        """Give a dataset another alias; another spelling of its own is fine."""
        old = self.dataset(dataset_id).alias
        self._check_free(alias, for_id=dataset_id)
        self._connection.execute(update(DATASETS).where(DATASETS.c.id == str(dataset_id)).values(_names(alias)))
        self._tell(dataset_id, DATASET_RENAMED, oldAlias=str(old), newAlias=str(alias))

    def delete_dataset(self, dataset_id: DatasetId) -> None:
        """Forget a dataset and its refs; its journal records stay."""
        alias = self.dataset(dataset_id).alias
        self._connection.execute(delete(DATASETS).where(DATASETS.c.id == str(dataset_id)))
        self._tell(dataset_id, DATASET_DELETED, alias=str(alias))

    def move_ref(self, dataset_id: DatasetId, name: str, *, expected: Multihash | None, new: Multihash) -> None:
        """Move a ref, or raise RefCASFailedError if it is not at `expected` (None: does not exist)."""
        check_ref_name(name)
        actual = self.ref(dataset_id, name)
        if actual is None:
            self.dataset(dataset_id)
        if actual != expected:
            failure = RefCASFailedError(name, expected=expected, actual=actual)
            failure.add_note(f"dataset {dataset_id}")
            raise failure
        values = {"block_hash": str(new), "updated_at": self._now()}
        if actual is None:
            check_ref_fits(name, queries.refs(self._connection, dataset_id))
            self._connection.execute(insert(REFS).values(dataset_id=str(dataset_id), name=name, **values))
        else:
            here = (REFS.c.dataset_id == str(dataset_id)) & (REFS.c.name == name)
            self._connection.execute(update(REFS).where(here).values(values))
        self._tell(
            dataset_id, REF_MOVED, ref=name, oldBlockHash=None if actual is None else str(actual), newBlockHash=str(new)
        )

    def begin_epoch(self, name: str) -> Epoch:
        """Take over a part that one process plays at a time: every earlier epoch of it ends with this transaction."""
        number = queries.epoch(self._connection, name) + 1
        if number == 1:
            self._connection.execute(insert(EPOCHS).values(name=name, epoch=number))
        else:
            self._connection.execute(update(EPOCHS).where(EPOCHS.c.name == name).values(epoch=number))
        return Epoch(name=name, number=number)

    def check_epoch(self, epoch: Epoch) -> None:
        """Raise FencedError if another process has taken over; nothing of this transaction happens then."""
        current = queries.epoch(self._connection, epoch.name)
        if current != epoch.number:
            raise FencedError(epoch.name, epoch=epoch.number, current=current)

    def push_sources(self, dataset_id: DatasetId) -> list[PushSourceBinding]:
        """The topics that push sources of a dataset are bound to."""
        return queries.push_sources(self._connection, dataset_id)

    def bind_push_source(self, binding: PushSourceBinding) -> None:
        """Bind a push source to its topic, or change how it is read; TopicTakenError if another source reads it."""
        holder = queries.push_source_of_topic(self._connection, binding.topic)
        key = (binding.dataset_id, binding.source_name)
        if holder is not None and (holder.dataset_id, holder.source_name) != key:
            alias = self.dataset(holder.dataset_id).alias
            raise TopicTakenError(binding.topic, taken_by=f"source {holder.source_name!r} of dataset {alias}")
        here = _source(*key)
        values = {"topic": binding.topic, "settings": binding.settings.model_dump_json(), "problem": binding.problem}
        changed = self._connection.execute(update(PUSH_SOURCES).where(here).values(values))
        if not changed.rowcount:
            self._connection.execute(
                insert(PUSH_SOURCES).values(
                    dataset_id=str(binding.dataset_id), source_name=binding.source_name, **values
                )
            )
        self._tell(binding.dataset_id, PUSH_SOURCE_BOUND, sourceName=binding.source_name, topic=binding.topic)

    def set_source_problem(self, dataset_id: DatasetId, source_name: str, problem: str | None) -> None:
        """Note why a push source is not read, or that it is read again."""
        self._connection.execute(update(PUSH_SOURCES).where(_source(dataset_id, source_name)).values(problem=problem))

    def record(self, record: JournalRecord) -> None:
        """Add a change to the journal."""
        payload = json.dumps(record.payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        self._connection.execute(
            insert(JOURNAL).values(
                dataset_id=str(record.dataset_id), kind=record.kind, payload=payload, created_at=self._now()
            )
        )

    def _check_free(self, alias: DatasetAlias, *, for_id: DatasetId) -> None:
        holder = queries.find_dataset(self._connection, alias)
        if holder is not None and holder.id != for_id:
            raise NameTakenError(alias, taken_by=holder.id)

    def _tell(self, dataset_id: DatasetId, record_kind: str, /, **payload: str | None) -> None:
        self.record(JournalRecord(dataset_id=dataset_id, kind=record_kind, payload=payload))

    def _now(self) -> str:
        return str(self._clock())


def _source(dataset_id: DatasetId, source_name: str) -> ColumnElement[bool]:
    return (PUSH_SOURCES.c.dataset_id == str(dataset_id)) & (PUSH_SOURCES.c.source_name == source_name)


def _names(alias: DatasetAlias) -> dict[str, str | None]:
    account = None if alias.account is None else alias.account.text
    return {"account": account, "name": alias.name.text, "alias_folded": queries.folded(alias)}
