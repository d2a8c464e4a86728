from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.errors import IdTakenError, NameTakenError
from odf_common.catalog.records import JournalRecord, RefMove
from odf_common.errors import NotFoundError, RefCASFailedError, StoreUnavailableError
from odf_common.identity.multihash import sha3_256
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import DatasetKind
from odf_common.repository.recovery import reconcile
from odf_common.repository.repository import Repository
from odf_common.storage.folder_objects import FolderObjects
from odf_common.storage.folder_refs import FolderRefs
from odf_common.storage.location import open_folder
from tests.unit.odf_common.repository.chains import an_id, append, create, put_block, put_seed

ORDERS = DatasetAlias.parse("acme/orders")


def test_a_created_dataset_is_opened_by_id_and_alias(repository: Repository) -> None:
    created = create(repository, 1, "Acme/Orders")
    for ref in (an_id(1), ORDERS):
        dataset = repository.open(ref)
        assert dataset.entry == created.entry
        head = dataset.refs.get("head")
        assert head is not None
        assert dataset.objects.get_block(head)
    assert [entry.alias for entry in repository.datasets()] == [ORDERS]


def test_a_dataset_that_was_not_created_cannot_be_opened(repository: Repository) -> None:
    put_seed(repository.folder(an_id(1)).objects, an_id(1))
    with pytest.raises(NotFoundError, match=str(an_id(1))):
        repository.open(an_id(1))


def test_the_folder_alone_is_a_whole_dataset(repository: Repository) -> None:
    dataset = create(repository, 1, "Acme/Orders")
    head = append(dataset, "more")
    folder = repository.root.folder(an_id(1).multibase)
    assert folder.refs.get("head") == head
    assert folder.objects.get_info("alias") == b"Acme/Orders"


def test_a_branch_is_a_file_too(repository: Repository) -> None:
    dataset = create(repository, 1, "orders")
    head = dataset.refs.get("head")
    assert head is not None
    dataset.refs.compare_and_set("branches/review", expected=None, new=head)
    assert repository.root.folder(an_id(1).multibase).refs.get("branches/review") == head


def test_names_and_ids_are_taken_once(repository: Repository) -> None:
    create(repository, 1, "orders")
    with pytest.raises(NameTakenError):
        create(repository, 2, "ORDERS")
    with pytest.raises(IdTakenError):
        create(repository, 1, "other")
    assert [entry.id for entry in repository.datasets()] == [an_id(1)]


def test_a_dataset_without_its_block_is_not_created(repository: Repository) -> None:
    with pytest.raises(NotFoundError):
        repository.create(an_id(1), ORDERS, DatasetKind.ROOT, head=sha3_256(b"nothing"))
    assert list(repository.datasets()) == []


def test_a_ref_does_not_move_to_a_block_that_is_missing(repository: Repository) -> None:
    dataset = create(repository, 1, "orders")
    head = dataset.refs.get("head")
    with pytest.raises(NotFoundError, match="put it there"):
        dataset.refs.compare_and_set("head", expected=head, new=sha3_256(b"nothing"))
    assert dataset.refs.get("head") == head


def test_what_a_ref_moves_to_is_durable_before(local_repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = create(local_repository, 1, "orders")
    steps: list[str] = []
    monkeypatch.setattr(FolderObjects, "put_block", noting(steps, "put", FolderObjects.put_block))
    monkeypatch.setattr(FolderObjects, "sync", noting(steps, "sync", FolderObjects.sync))
    monkeypatch.setattr(Catalog, "begin", noting(steps, "catalog", Catalog.begin))
    monkeypatch.setattr(FolderRefs, "compare_and_set", noting(steps, "file", FolderRefs.compare_and_set))
    append(dataset, "more")
    assert steps == ["put", "sync", "catalog", "file"]


def test_a_stale_head_is_refused_and_nothing_is_told(repository: Repository) -> None:
    dataset = create(repository, 1, "orders")
    old = dataset.refs.get("head")
    new = append(dataset, "more")
    told = repository.catalog.pending_journal(limit=100)
    with pytest.raises(RefCASFailedError) as failed:
        dataset.refs.compare_and_set("head", expected=old, new=new)
    assert failed.value.actual == new
    assert repository.catalog.pending_journal(limit=100) == told


def test_several_datasets_move_together_with_their_records(repository: Repository) -> None:
    datasets = [create(repository, number, f"dataset-{number}") for number in (1, 2)]
    moves = []
    for dataset in datasets:
        head = dataset.refs.get("head")
        assert head is not None
        new = put_block(dataset.objects, after=head, text="together")
        moves.append(RefMove(dataset_id=dataset.entry.id, name="head", expected=head, new=new))
    told = JournalRecord(dataset_id=an_id(1), kind="BlocksAppended", payload={"count": 1})
    repository.move_refs(moves, records=[told])
    for move in moves:
        assert repository.root.folder(move.dataset_id.multibase).refs.get("head") == move.new
    assert repository.catalog.pending_journal(limit=100)[-1].record == told


def test_a_dataset_is_renamed_in_catalog_and_folder(repository: Repository) -> None:
    dataset = create(repository, 1, "orders")
    repository.rename(DatasetAlias.parse("ORDERS"), ORDERS)
    assert repository.open(ORDERS).entry.id == an_id(1)
    assert dataset.objects.get_info("alias") == b"acme/orders"


def test_a_deleted_dataset_leaves_no_folder(repository: Repository) -> None:
    for number in (1, 2):
        create(repository, number, f"dataset-{number}")
    repository.delete(an_id(1))
    assert list(repository.root.names()) == [an_id(2).multibase]
    assert [entry.id for entry in repository.datasets()] == [an_id(2)]
    create(repository, 1, "dataset-1")


def test_a_dataset_elsewhere_is_opened_there_and_never_deleted(local_repository: Repository, tmp_path: Path) -> None:
    elsewhere = open_folder(tmp_path / "elsewhere")
    head = put_seed(elsewhere.objects, an_id(1))
    with local_repository.catalog.begin() as transaction:
        transaction.add_dataset(an_id(1), ORDERS, DatasetKind.ROOT, location=str(tmp_path / "elsewhere"))
        transaction.move_ref(an_id(1), "head", expected=None, new=head)
    append(local_repository.open(ORDERS), "more")
    local_repository.delete(ORDERS)
    assert elsewhere.refs.get("head") is not None
    assert len(list((tmp_path / "elsewhere/blocks").iterdir())) == 2


def test_a_file_that_cannot_be_written_does_not_undo_a_committed_move(
    local_repository: Repository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailableError("disk full")

    dataset = create(local_repository, 1, "orders")
    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
        broken.setattr(FolderRefs, "compare_and_set", fail)
        head = append(dataset, "more")
    assert "lag behind" in caplog.text
    assert dataset.refs.get("head") == head
    reconcile(local_repository)
    assert local_repository.root.folder(an_id(1).multibase).refs.get("head") == head


@pytest.mark.slow
def test_the_file_follows_the_catalog_however_many_writers_there_are(local_repository: Repository) -> None:
    create(local_repository, 1, "orders")

    def append_some(writer: int) -> None:
        dataset = Repository(local_repository.root, local_repository.catalog).open(an_id(1))
        for number in range(25):
            while True:
                try:
                    append(dataset, f"{writer} {number}")
                except RefCASFailedError:
                    continue
                break

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append_some, range(4)))
    head = local_repository.catalog.ref(an_id(1), "head")
    assert local_repository.root.folder(an_id(1).multibase).refs.get("head") == head
    moves = [e for e in local_repository.catalog.pending_journal(limit=1000) if e.record.kind == "RefMoved"]
    assert len(moves) == 1 + 4 * 25


def noting(steps: list[str], name: str, function: object) -> object:
    """The function, which also notes that it was called."""

    def noted(*args: object, **options: object) -> object:
        steps.append(name)
        return function(*args, **options)  # type: ignore[operator]

    return noted
