"""The steps of `move_refs` one by one: a wait for the disk, a transaction, files."""

from __future__ import annotations

from unittest import mock

import pytest

from odf_common.catalog.errors import FencedError
from odf_common.catalog.records import RefMove
from odf_common.errors import StoreUnavailableError
from odf_common.repository.repository import Dataset, Repository
from odf_common.storage.folder_objects import FolderObjects
from tests.unit.odf_common.repository.chains import create, put_block


def a_move(dataset: Dataset, text: str) -> RefMove:
    head = dataset.refs.get("head")
    assert head is not None
    new = put_block(dataset.objects, after=head, text=text)
    return RefMove(dataset_id=dataset.entry.id, name="head", expected=head, new=new)


def test_the_transaction_leaves_the_files_for_later(repository: Repository) -> None:
    dataset = create(repository, 1, "orders")
    move = a_move(dataset, "more")
    files = repository.folder_of(dataset.entry).refs
    repository.commit_moves([move])
    assert (dataset.refs.get("head"), files.get("head")) == (move.new, move.expected)
    repository.mirror(dataset.entry, "head")
    assert files.get("head") == move.new


def test_a_fenced_process_moves_nothing(repository: Repository) -> None:
    dataset = create(repository, 1, "orders")
    with repository.catalog.begin() as transaction:
        epoch = transaction.begin_epoch("part")
    repository.commit_moves([a_move(dataset, "one")], epoch=epoch)
    with repository.catalog.begin() as transaction:
        transaction.begin_epoch("part")
    head = dataset.refs.get("head")
    with pytest.raises(FencedError):
        repository.commit_moves([a_move(dataset, "two")], epoch=epoch)
    assert dataset.refs.get("head") == head


@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_many_datasets_are_synced(local_repository: Repository, count: int) -> None:
    entries = [create(local_repository, number, f"d{number}").entry for number in range(count)]
    with mock.patch.object(FolderObjects, "sync", autospec=True) as sync:
        local_repository.sync(entries)
    assert sync.call_count == count


def test_a_sync_that_fails_says_so(local_repository: Repository) -> None:
    entries = [create(local_repository, number, f"d{number}").entry for number in range(3)]
    with (
        mock.patch.object(FolderObjects, "sync", side_effect=StoreUnavailableError("the disk is gone")),
        pytest.raises(StoreUnavailableError),
    ):
        local_repository.sync(entries)
