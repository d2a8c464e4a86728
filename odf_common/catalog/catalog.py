"""The catalog: which datasets exist, where their refs stand, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sqlalchemy import update

from odf_common.catalog import queries
from odf_common.catalog.engine import make_engine, place, reading, writing
from odf_common.catalog.errors import FencedError
from odf_common.catalog.records import AccountEntry, DatasetEntry, Epoch, JournalEntry, PushSourceBinding
from odf_common.catalog.schema import bring_up_to_date
from odf_common.catalog.tables import JOURNAL
from odf_common.catalog.transaction import CatalogTransaction
from odf_common.identity.did import AccountId, DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import AccountName, DatasetAlias, DatasetRef
from odf_common.storage.layout import check_ref_name
from odf_common.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

_PAGE_SIZE = 500


class Catalog:
    """A catalog in SQLite or Postgres. Safe to share between threads, and between processes that each open their own.

    All methods raise StoreUnavailableError when the database is gone or stays locked. If that happens while a
    transaction commits, it may have been committed: look before trying again.
    """

    def __init__(self, engine: Engine, clock: Callable[[], Timestamp]) -> None:
        self._engine = engine
        self._clock = clock

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], Timestamp] = Timestamp.now) -> Self:
        """Open `sqlite:///path` or `postgresql://…`, creating or upgrading the tables where needed."""
        engine = make_engine(url)
        try:
            bring_up_to_date(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, clock)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({place(self._engine)!r})"

    @contextmanager
    def begin(self) -> Iterator[CatalogTransaction]:
        """A transaction: committed at the end of the block, undone if the block raises. Keep it short."""
        with writing(self._engine) as connection:
            yield CatalogTransaction(connection, self._clock)

    def dataset(self, ref: DatasetRef) -> DatasetEntry:
        """A dataset by id, or by alias without regard to case; NotFoundError if there is none."""
        with reading(self._engine) as connection:
            return queries.dataset(connection, ref)

    def dataset_page(self, *, after: DatasetAlias | None = None, limit: int = _PAGE_SIZE) -> list[DatasetEntry]:
        """The next datasets in the order of their aliases."""
        with reading(self._engine) as connection:
            return queries.dataset_page(connection, after=after, limit=limit)

    def datasets(self) -> Iterator[DatasetEntry]:
        """All datasets in the order of their aliases, as a stream of pages."""
        page = self.dataset_page()
        while page:
            yield from page
            page = self.dataset_page(after=page[-1].alias)

    def find_account(self, account: AccountId | AccountName) -> AccountEntry | None:
        """An account by id, or by name without regard to case."""
        with reading(self._engine) as connection:
            return queries.find_account(connection, account)

    def ref(self, dataset_id: DatasetId, name: str) -> Multihash | None:
        """Where a ref stands; None if it or the dataset does not exist."""
        check_ref_name(name)
        with reading(self._engine) as connection:
            return queries.ref(connection, dataset_id, name)

    def refs(self, dataset_id: DatasetId) -> dict[str, Multihash]:
        """All refs of a dataset."""
        with reading(self._engine) as connection:
            return queries.refs(connection, dataset_id)

    def heads(self, dataset_ids: Iterable[DatasetId]) -> dict[DatasetId, Multihash]:
        """Where the heads of datasets stand, at one moment; a dataset that does not exist is left out."""
        with reading(self._engine) as connection:
            return queries.heads(connection, list(dataset_ids))

    def check_epoch(self, epoch: Epoch) -> None:
        """Raise FencedError if another process has taken over, as a transaction's `check_epoch` does."""
        with reading(self._engine) as connection:
            current = queries.epoch(connection, epoch.name)
        if current != epoch.number:
            raise FencedError(epoch.name, epoch=epoch.number, current=current)

    def pending_journal(self, *, limit: int, after: int = 0) -> list[JournalEntry]:
        """The oldest changes that were not marked as published, oldest first; those behind record `after` only.

        Publish them in this order, then mark them. What was published but not marked comes again: every change is
        told at least once, and with one publisher at a time the changes of a dataset are told in their order.
        """
        with reading(self._engine) as connection:
            return list(queries.pending_journal(connection, limit=limit, after=after))

    def push_sources(self, dataset_id: DatasetId | None = None) -> list[PushSourceBinding]:
        """The topics that push sources of a dataset, or of all, are bound to."""
        with reading(self._engine) as connection:
            return queries.push_sources(connection, dataset_id)

    def mark_published(self, ids: Iterable[int]) -> None:
        """Leave these changes out from now on; marking twice is fine."""
        marked = list(ids)
        if not marked:
            return
        with writing(self._engine) as connection:
            pending = JOURNAL.c.id.in_(marked) & JOURNAL.c.published_at.is_(None)
            connection.execute(update(JOURNAL).where(pending).values(published_at=str(self._clock())))


class CatalogRefs:
    """The RefStore of one dataset in the catalog; every move is journaled.

    It knows nothing of the dataset's folder: in a repository, refs move through `Repository.move_refs`.
    """

    def __init__(self, catalog: Catalog, dataset_id: DatasetId) -> None:
        self._catalog = catalog
        self._dataset_id = dataset_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._catalog!r}, {str(self._dataset_id)!r})"

    def get(self, name: str) -> Multihash | None:
        """Where the ref stands."""
        return self._catalog.ref(self._dataset_id, name)

    def compare_and_set(self, name: str, *, expected: Multihash | None, new: Multihash) -> None:
        """Move the ref, or raise RefCASFailedError; NotFoundError if the dataset does not exist."""
        with self._catalog.begin() as transaction:
            transaction.move_ref(self._dataset_id, name, expected=expected, new=new)
