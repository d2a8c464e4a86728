"""Reading the catalog within a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from odf_common.catalog.records import (
    AccountEntry,
    DatasetEntry,
    JournalEntry,
    JournalRecord,
    PushSourceBinding,
    SourceSettings,
)
from odf_common.catalog.tables import ACCOUNTS, DATASETS, EPOCHS, JOURNAL, PUSH_SOURCES, REFS
from odf_common.errors import NotFoundError
from odf_common.identity.did import AccountId, DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import AccountName, DatasetAlias, DatasetName, DatasetRef
from odf_common.metadata.events import DatasetKind
from odf_common.storage.layout import HEAD
from odf_common.timestamp import Timestamp


def folded(alias: DatasetAlias) -> str:
    """The form of an alias that decides equality; the account is part of it."""
    return str(alias).lower()


def find_dataset(connection: Connection, ref: DatasetRef) -> DatasetEntry | None:
    """A dataset by id or alias, or None."""
    found = DATASETS.c.id == str(ref) if isinstance(ref, DatasetId) else DATASETS.c.alias_folded == folded(ref)
    row = connection.execute(select(DATASETS).where(found)).one_or_none()
    return None if row is None else _dataset(row)


def dataset(connection: Connection, ref: DatasetRef) -> DatasetEntry:
    """A dataset by id or alias, or NotFoundError."""
    entry = find_dataset(connection, ref)
    if entry is None:
        raise NotFoundError(f"there is no dataset {ref} in this repository")
    return entry


def dataset_page(connection: Connection, *, after: DatasetAlias | None, limit: int) -> list[DatasetEntry]:
    """The next datasets in the order of their aliases."""
    query: Select[Any] = select(DATASETS).order_by(DATASETS.c.alias_folded).limit(limit)
    if after is not None:
        query = query.where(DATASETS.c.alias_folded > folded(after))
    return [_dataset(row) for row in connection.execute(query)]


def find_account(connection: Connection, account: AccountId | AccountName) -> AccountEntry | None:
    """An account by id or name, or None."""
    by_id = isinstance(account, AccountId)
    found = ACCOUNTS.c.id == str(account) if by_id else ACCOUNTS.c.name_folded == str(account).lower()
    row = connection.execute(select(ACCOUNTS).where(found)).one_or_none()
    return None if row is None else _account(row)


def ref(connection: Connection, dataset_id: DatasetId, name: str) -> Multihash | None:
    """Where a ref stands, or None."""
    here = (REFS.c.dataset_id == str(dataset_id)) & (REFS.c.name == name)
    text = connection.execute(select(REFS.c.block_hash).where(here)).scalar_one_or_none()
    return None if text is None else Multihash.parse(text)


def refs(connection: Connection, dataset_id: DatasetId) -> dict[str, Multihash]:
    """All refs of a dataset."""
    query = select(REFS.c.name, REFS.c.block_hash).where(REFS.c.dataset_id == str(dataset_id)).order_by(REFS.c.name)
    return {name: Multihash.parse(text) for name, text in connection.execute(query)}


def heads(connection: Connection, dataset_ids: Sequence[DatasetId]) -> dict[DatasetId, Multihash]:
    """Where the heads of these datasets stand; a dataset that does not exist is left out."""
    ids = {str(dataset_id): dataset_id for dataset_id in dataset_ids}
    query = select(REFS.c.dataset_id, REFS.c.block_hash).where((REFS.c.name == HEAD) & REFS.c.dataset_id.in_(ids))
    return {ids[text]: Multihash.parse(block_hash) for text, block_hash in connection.execute(query)}


def pending_journal(connection: Connection, *, limit: int, after: int) -> Iterator[JournalEntry]:
    """The oldest changes behind record `after` that were not told yet, oldest first."""
    pending = JOURNAL.c.published_at.is_(None) & (JOURNAL.c.id > after)
    query = select(JOURNAL).where(pending).order_by(JOURNAL.c.id).limit(limit)
    return map(_journal_entry, connection.execute(query))


def epoch(connection: Connection, name: str) -> int:
    """The latest epoch of a part, 0 if nobody played it yet."""
    found: int | None = connection.execute(select(EPOCHS.c.epoch).where(EPOCHS.c.name == name)).scalar_one_or_none()
    return found or 0


def push_sources(connection: Connection, dataset_id: DatasetId | None = None) -> list[PushSourceBinding]:
    """The bindings of a dataset's push sources, or of all."""
    query: Select[Any] = select(PUSH_SOURCES).order_by(PUSH_SOURCES.c.dataset_id, PUSH_SOURCES.c.source_name)
    if dataset_id is not None:
        query = query.where(PUSH_SOURCES.c.dataset_id == str(dataset_id))
    return [_push_source(row) for row in connection.execute(query)]


def push_source_of_topic(connection: Connection, topic: str) -> PushSourceBinding | None:
    """The push source that reads a topic, or None."""
    row = connection.execute(select(PUSH_SOURCES).where(PUSH_SOURCES.c.topic == topic)).one_or_none()
    return None if row is None else _push_source(row)


def _push_source(row: Row[Any]) -> PushSourceBinding:
    return PushSourceBinding(
        dataset_id=DatasetId.parse(row.dataset_id),
        source_name=row.source_name,
        topic=row.topic,
        settings=SourceSettings.model_validate_json(row.settings),
        problem=row.problem,
    )


def _dataset(row: Row[Any]) -> DatasetEntry:
    account = None if row.account is None else AccountName.parse(row.account)
    return DatasetEntry(
        id=DatasetId.parse(row.id),
        alias=DatasetAlias(account, DatasetName.parse(row.name)),
        kind=DatasetKind(row.kind),
        location=row.location,
        created_at=Timestamp.parse(row.created_at),
    )


def _account(row: Row[Any]) -> AccountEntry:
    return AccountEntry(
        id=AccountId.parse(row.id), name=AccountName.parse(row.name), created_at=Timestamp.parse(row.created_at)
    )


def _journal_entry(row: Row[Any]) -> JournalEntry:
    record = JournalRecord(dataset_id=DatasetId.parse(row.dataset_id), kind=row.kind, payload=json.loads(row.payload))
    return JournalEntry(id=row.id, record=record, created_at=Timestamp.parse(row.created_at))
