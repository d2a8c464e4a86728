"""Many datasets below one root, with a catalog that knows them and where their refs stand.

The catalog is the truth about refs. The same refs are kept as files, so that any web server can serve a dataset's
folder and a lost catalog can be rebuilt (docs/decisions/0006-catalog-and-refs.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from odf_common.catalog.records import DatasetEntry, Epoch, JournalRecord, RefMove
from odf_common.errors import CorruptedError, NotFoundError, OdfError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import DatasetAlias, DatasetRef
from odf_common.metadata.events import DatasetKind
from odf_common.repository.ref_mirror import bring_in_line
from odf_common.storage.dataset_folder import DatasetFolder, DatasetRoot
from odf_common.storage.layout import ALIAS_INFO, HEAD, ObjectKind
from odf_common.storage.location import FROM_ENVIRONMENT, S3Options, is_elsewhere, open_folder, open_root
from odf_common.storage.ports import ObjectStore, RefStore
from odf_common.storage.syncing import sync_all

if TYPE_CHECKING:
    from odf_common.catalog.catalog import Catalog
    from odf_common.catalog.transaction import CatalogTransaction

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset of a repository, open for reading and writing."""

    entry: DatasetEntry
    objects: ObjectStore
    refs: RefStore
    """Moves go through `Repository.move_refs`."""


class Repository:
    """Datasets below a root, each in a folder named by its id.

    A new state becomes visible in this order: objects, `sync`, the catalog's transaction, the refs' files. A crash
    in between leaves objects that nothing refers to, or files that lag behind until the next move, or until
    `recovery.reconcile`.
    """

    def __init__(self, root: DatasetRoot, catalog: Catalog, *, s3: S3Options = FROM_ENVIRONMENT) -> None:
        self.root = root
        self.catalog = catalog
        self._s3 = s3
        # One object for each folder, as it remembers what is not synced yet.
        self._folders: dict[str, DatasetFolder] = {}

    @classmethod
    def at(cls, location: str | Path, catalog: Catalog, *, s3: S3Options = FROM_ENVIRONMENT) -> Self:
        """The repository at a local folder, `s3://bucket/prefix` or `memory:`."""
        return cls(open_root(location, s3=s3), catalog, s3=s3)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.root!r}, {self.catalog!r})"

    def open(self, ref: DatasetRef) -> Dataset:
        """A dataset by id or alias; NotFoundError if the catalog does not know it."""
        entry = self.catalog.dataset(ref)
        return Dataset(entry, self.folder_of(entry).objects, _RepositoryRefs(self, entry.id))

    def datasets(self) -> Iterator[DatasetEntry]:
        """All datasets in the order of their aliases, as a stream."""
        return self.catalog.datasets()

    def folder(self, dataset_id: DatasetId) -> DatasetFolder:
        """Where a new dataset goes: its objects are put here before `create`."""
        return self._folder_at(dataset_id.multibase)

    def create(
        self,
        dataset_id: DatasetId,
        alias: DatasetAlias,
        kind: DatasetKind,
        *,
        head: Multihash,
        within: Callable[[CatalogTransaction], None] = lambda transaction: None,
    ) -> Dataset:
        """Make a dataset known whose blocks up to `head` are in its folder.

        `within` does more in the same transaction: if it raises, the dataset does not come to be. NotFoundError if
        the block is not there, NameTakenError or IdTakenError if the catalog says so.
        """
        folder = self.folder(dataset_id)
        _check_block(folder, head)
        folder.objects.sync()
        with self.catalog.begin() as transaction:
            transaction.add_dataset(dataset_id, alias, kind, location=dataset_id.multibase)
            transaction.move_ref(dataset_id, HEAD, expected=None, new=head)
            within(transaction)
        dataset = self.open(dataset_id)
        with self._lagging(dataset.entry):
            self.write_alias_file(dataset.entry)
            self.write_ref_file(dataset.entry, HEAD)
        return dataset

    def rename(self, ref: DatasetRef, alias: DatasetAlias) -> None:
        """Give a dataset another alias; NameTakenError if another one has it."""
        dataset_id = self.catalog.dataset(ref).id
        with self.catalog.begin() as transaction:
            transaction.rename_dataset(dataset_id, alias)
        entry = self.catalog.dataset(dataset_id)
        with self._lagging(entry):
            self.write_alias_file(entry)

    def delete(self, ref: DatasetRef) -> None:
        """Forget a dataset and delete its folder; a folder outside of the root stays."""
        entry = self.catalog.dataset(ref)
        is_ours = not is_elsewhere(entry.location)
        if is_ours:
            # Refs first: without them, a folder that survives a crash is not taken for a dataset by a rebuild.
            files = self.folder_of(entry).refs
            for name in list(files.names()):
                files.remove(name)
        with self.catalog.begin() as transaction:
            transaction.delete_dataset(entry.id)
        self._folders.pop(entry.location, None)
        if is_ours:
            self.root.remove(entry.location)

    def move_refs(self, moves: Iterable[RefMove], *, records: Iterable[JournalRecord] = ()) -> None:
        """Make new blocks visible: move refs and journal `records` in one transaction, all or nothing.

        What was put into the datasets' folders through this repository is made durable before. RefCASFailedError for
        the first ref that is not where it should be; NotFoundError for a block that is not in its folder.
        """
        moves = list(moves)
        entries = {move.dataset_id: self.catalog.dataset(move.dataset_id) for move in moves}
        for move in moves:
            _check_block(self.folder_of(entries[move.dataset_id]), move.new)
        self.sync(entries.values())
        self.commit_moves(moves, records=records)
        for move in moves:
            self.mirror(entries[move.dataset_id], move.name)

    def sync(self, entries: Iterable[DatasetEntry]) -> None:
        """Make durable what was put into the folders of datasets through this repository."""
        sync_all(self.folder_of(entry).objects for entry in entries)

    def commit_moves(
        self, moves: Iterable[RefMove], *, records: Iterable[JournalRecord] = (), epoch: Epoch | None = None
    ) -> None:
        """The transaction of `move_refs` alone, for who has synced before and mirrors the refs' files later.

        With `epoch`, FencedError if another process has taken over; nothing has happened then.
        """
        with self.catalog.begin() as transaction:
            if epoch is not None:
                transaction.check_epoch(epoch)
            for move in moves:
                transaction.move_ref(move.dataset_id, move.name, expected=move.expected, new=move.new)
            for record in records:
                transaction.record(record)

    def mirror(self, entry: DatasetEntry, name: str) -> None:
        """Bring the file of a ref in line after its move; a failure is logged, as the move has happened."""
        with self._lagging(entry):
            self.write_ref_file(entry, name)

    def folder_of(self, entry: DatasetEntry) -> DatasetFolder:
        """Where a dataset of the catalog lies."""
        return self._folder_at(entry.location)

    def write_ref_file(self, entry: DatasetEntry, name: str) -> bool:
        """Make the file of a ref say what the catalog says; returns whether it had to be written."""
        return bring_in_line(self.folder_of(entry).refs, name, lambda: self.catalog.ref(entry.id, name))

    def write_alias_file(self, entry: DatasetEntry) -> bool:
        """Make `info/alias` say what the catalog says; returns whether it had to be written."""
        objects = self.folder_of(entry).objects
        alias = str(entry.alias).encode()
        with suppress(CorruptedError):
            if objects.get_info(ALIAS_INFO) == alias:
                return False
        objects.put_info(ALIAS_INFO, alias)
        return True

    def _folder_at(self, location: str) -> DatasetFolder:
        folder = self._folders.get(location)
        if folder is None:
            opened = open_folder(location, s3=self._s3) if is_elsewhere(location) else self.root.folder(location)
            folder = self._folders.setdefault(location, opened)
        return folder

    @contextmanager
    def _lagging(self, entry: DatasetEntry) -> Iterator[None]:
        """Let files lag behind: what they should follow is committed, and a failure now must not look like its."""
        try:
            yield
        except OdfError as error:
            _log.warning("the files of dataset %s lag behind the catalog until it is reconciled: %s", entry.id, error)


class _RepositoryRefs:
    """The RefStore of a dataset in a repository."""

    def __init__(self, repository: Repository, dataset_id: DatasetId) -> None:
        self._repository = repository
        self._dataset_id = dataset_id

    def get(self, name: str) -> Multihash | None:
        return self._repository.catalog.ref(self._dataset_id, name)

    def compare_and_set(self, name: str, *, expected: Multihash | None, new: Multihash) -> None:
        move = RefMove(dataset_id=self._dataset_id, name=name, expected=expected, new=new)
        self._repository.move_refs([move])


def _check_block(folder: DatasetFolder, block_hash: Multihash) -> None:
    if not folder.objects.has(ObjectKind.BLOCKS, block_hash):
        raise NotFoundError(f"block {block_hash} is not in the folder of the dataset: put it there before moving a ref")
