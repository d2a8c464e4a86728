from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.identity.multihash import sha3_256
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import DatasetKind
from odf_common.repository.recovery import Problem, rebuild_catalog, reconcile
from odf_common.repository.repository import Repository
from odf_common.storage.layout import ObjectKind
from tests.unit.odf_common.repository.chains import an_id, append, create, put_seed

FOLDER = an_id(1).multibase


@pytest.fixture
def new_catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(f"sqlite:///{tmp_path}/new.db") as catalog:
        yield catalog


def test_files_that_are_in_line_are_left_alone(repository: Repository) -> None:
    create(repository, 1, "orders")
    reconciled = reconcile(repository)
    assert (reconciled.written, reconciled.problems) == ((), ())


@pytest.mark.parametrize("is_missing", [False, True])
def test_the_catalog_wins_over_files(repository: Repository, is_missing: bool) -> None:
    dataset = create(repository, 1, "orders")
    old = dataset.refs.get("head")
    assert old is not None
    head = append(dataset, "more")
    files = repository.root.folder(FOLDER).refs
    if is_missing:
        files.remove("head")
    else:
        files.replace("head", old)
    dataset.objects.put_info("alias", b"something else")
    assert reconcile(repository).written == (f"{FOLDER}/refs/head", f"{FOLDER}/info/alias")
    assert files.get("head") == head
    assert dataset.objects.get_info("alias") == b"orders"
    assert reconcile(repository).written == ()


def test_the_catalog_wins_over_a_damaged_file(local_repository: Repository, tmp_path: Path) -> None:
    dataset = create(local_repository, 1, "orders")
    file = tmp_path / "datasets" / FOLDER / "refs/head"
    file.write_bytes(b"")
    reconcile(local_repository)
    assert file.read_text() == str(dataset.refs.get("head"))
    file.write_bytes(b"f1620")
    head = append(dataset, "more")
    assert file.read_text() == str(head)


def test_a_stranger_in_the_way_of_a_ref_is_reported(local_repository: Repository, tmp_path: Path) -> None:
    dataset = create(local_repository, 1, "orders")
    head = dataset.refs.get("head")
    assert head is not None
    (tmp_path / "datasets" / FOLDER / "refs/branches").write_text(str(head))
    dataset.refs.compare_and_set("branches/review", expected=None, new=head)
    (problem,) = reconcile(local_repository).problems
    assert "cannot exist beside the ref 'branches'" in problem.reason


def test_no_file_is_made_to_point_at_something_missing(local_repository: Repository) -> None:
    create(local_repository, 1, "orders")
    local_repository.root.remove(FOLDER)
    (problem,) = reconcile(local_repository).problems
    assert problem.folder == FOLDER
    assert "there is no such block" in problem.reason
    assert local_repository.root.folder(FOLDER).refs.get("head") is None


def test_a_folder_that_the_catalog_does_not_know_is_reported_and_kept(repository: Repository) -> None:
    create(repository, 1, "orders")
    head = put_seed(repository.folder(an_id(2)).objects, an_id(2))
    repository.root.folder("lost+found").objects.put_info("x", b"")
    (problem,) = reconcile(repository).problems
    assert problem.folder == an_id(2).multibase
    assert repository.folder(an_id(2)).objects.has(ObjectKind.BLOCKS, head)


def test_what_dead_writers_left_is_removed(local_repository: Repository, tmp_path: Path) -> None:
    dataset = create(local_repository, 1, "orders")
    dataset.refs.compare_and_set("branches/review", expected=None, new=append(dataset, "more"))
    yesterday = time.time() - 86_400
    for folder in ("refs", "refs/branches", "blocks", "info"):
        left_over = tmp_path / "datasets" / FOLDER / folder / ".pending-dead"
        left_over.write_bytes(b"")
        os.utime(left_over, (yesterday, yesterday))
    reconcile(local_repository)
    assert list(tmp_path.rglob(".pending-*")) == []


def test_a_folder_that_cannot_be_written_does_not_stop_the_others(local_repository: Repository, tmp_path: Path) -> None:
    folders = [tmp_path / "datasets" / create(local_repository, n, f"d{n}").entry.location for n in (1, 2, 3)]
    for folder in folders:
        (folder / "refs/head").unlink()
    (folders[1] / "refs").rmdir()
    (folders[1] / "refs").touch()
    reconciled = reconcile(local_repository)
    assert reconciled.written == tuple(f"{folder.name}/refs/head" for folder in (folders[0], folders[2]))
    assert {problem.folder for problem in reconciled.problems} == {folders[1].name}


def test_an_alias_that_is_no_file_is_reported(local_repository: Repository, tmp_path: Path) -> None:
    create(local_repository, 1, "orders")
    alias = tmp_path / "datasets" / FOLDER / "info/alias"
    alias.unlink()
    alias.mkdir()
    (problem,) = reconcile(local_repository).problems
    assert problem.folder == FOLDER


def test_a_folder_that_cannot_be_read_does_not_stop_a_rebuild(
    local_repository: Repository, new_catalog: Catalog, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        create(local_repository, number, f"d{number}")
    unreadable = tmp_path / "datasets" / an_id(2).multibase / "info"
    (unreadable / "alias").unlink()
    unreadable.rmdir()
    unreadable.touch()
    junk = local_repository.folder(an_id(3))
    junk.objects.put_block(sha3_256(b"junk"), b"junk")
    junk.refs.replace("head", sha3_256(b"junk"))
    result = rebuild_catalog(Repository(local_repository.root, new_catalog))
    assert [entry.id for entry in result.restored] == [an_id(1)]
    assert {problem.folder for problem in result.problems} == {an_id(number).multibase for number in (2, 3)}


def test_a_lost_catalog_is_rebuilt_from_the_folders(repository: Repository, new_catalog: Catalog) -> None:
    create(repository, 1, "Acme/orders")
    create(repository, 2, "totals", DatasetKind.DERIVATIVE)
    head = append(repository.open(an_id(1)), "more")
    repository.open(an_id(1)).refs.compare_and_set("branches/review", expected=None, new=head)
    rebuilt = Repository(repository.root, new_catalog)
    result = rebuild_catalog(rebuilt)
    assert result.problems == ()
    assert [(str(entry.alias), entry.kind) for entry in result.restored] == [
        ("Acme/orders", DatasetKind.ROOT),
        ("totals", DatasetKind.DERIVATIVE),
    ]
    assert new_catalog.refs(an_id(1)) == {"head": head, "branches/review": head}
    append(rebuilt.open(DatasetAlias.parse("acme/ORDERS")), "life goes on")
    assert reconcile(rebuilt).problems == ()


def test_rebuilding_twice_adds_nothing(repository: Repository) -> None:
    create(repository, 1, "orders")
    result = rebuild_catalog(repository)
    assert (result.restored, result.problems) == ((), ())


def test_of_two_datasets_of_one_name_the_later_one_is_reported(repository: Repository, new_catalog: Catalog) -> None:
    create(repository, 1, "orders")
    create(repository, 2, "other").objects.put_info("alias", b"ORDERS")
    result = rebuild_catalog(Repository(repository.root, new_catalog))
    assert [entry.id for entry in result.restored] == [an_id(1)]
    (problem,) = result.problems
    assert problem.folder == an_id(2).multibase
    assert "taken by" in problem.reason


@pytest.mark.parametrize("alias", [b"", b"no_such.name", b"\xff"])
def test_a_dataset_without_a_readable_alias_is_named_like_its_folder(
    repository: Repository, new_catalog: Catalog, alias: bytes
) -> None:
    create(repository, 1, "orders").objects.put_info("alias", alias)
    (entry,) = rebuild_catalog(Repository(repository.root, new_catalog)).restored
    assert str(entry.alias) == FOLDER


def test_a_folder_without_a_head_never_was_a_dataset(repository: Repository, new_catalog: Catalog) -> None:
    put_seed(repository.folder(an_id(1)).objects, an_id(1))
    assert problem_of_rebuilding(repository, new_catalog).reason.startswith("refs/head: it does not exist")


def test_a_chain_of_another_dataset_is_reported(repository: Repository, new_catalog: Catalog) -> None:
    folder = repository.folder(an_id(1))
    folder.refs.replace("head", put_seed(folder.objects, an_id(2)))
    assert "another dataset" in problem_of_rebuilding(repository, new_catalog).reason


@pytest.mark.parametrize("content", [b"", b"f1620\n"])
def test_a_damaged_head_is_reported_and_left_alone(
    local_repository: Repository, new_catalog: Catalog, tmp_path: Path, content: bytes
) -> None:
    create(local_repository, 1, "orders")
    file = tmp_path / "datasets" / FOLDER / "refs/head"
    file.write_bytes(content)
    assert problem_of_rebuilding(local_repository, new_catalog).reason.startswith("refs/head")
    assert file.read_bytes() == content


def test_a_damaged_block_is_reported(local_repository: Repository, new_catalog: Catalog) -> None:
    dataset = create(local_repository, 1, "orders")
    head = dataset.refs.get("head")
    assert head is not None
    dataset.objects.put_block(head, b"not this")
    assert str(head) in problem_of_rebuilding(local_repository, new_catalog).reason


def test_a_damaged_branch_is_reported_and_does_not_cost_the_dataset(
    local_repository: Repository, new_catalog: Catalog, tmp_path: Path
) -> None:
    create(local_repository, 1, "orders")
    (tmp_path / "datasets" / FOLDER / "refs/README").write_bytes(b"hello")
    result = rebuild_catalog(Repository(local_repository.root, new_catalog))
    assert [entry.id for entry in result.restored] == [an_id(1)]
    assert [problem.folder for problem in result.problems] == [FOLDER]


def test_a_deletion_that_did_not_finish_is_not_undone_by_a_rebuild(
    local_repository: Repository, new_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(local_repository, 1, "orders")
    with monkeypatch.context() as crash:
        crash.setattr(local_repository.root, "remove", lambda name: None)
        local_repository.delete(an_id(1))
    assert rebuild_catalog(Repository(local_repository.root, new_catalog)).restored == ()


def problem_of_rebuilding(repository: Repository, new_catalog: Catalog) -> Problem:
    result = rebuild_catalog(Repository(repository.root, new_catalog))
    assert result.restored == ()
    (problem,) = result.problems
    assert problem.folder == FOLDER
    return problem
