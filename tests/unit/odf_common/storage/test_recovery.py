from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import DatasetKind
from odf_common.storage.layout import ObjectKind
from odf_common.storage.recovery import Problem
from odf_common.storage.repository import Repository
from tests.unit.odf_common.storage.chains import an_id, append, create, put_block, put_seed

FOLDER = an_id(1).multibase


@pytest.fixture
def new_catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(f"sqlite:///{tmp_path}/new.db") as catalog:
        yield catalog


def test_files_that_are_in_line_are_left_alone(repository: Repository) -> None:
    create(repository, 1, "orders")
    reconciled = repository.reconcile()
    assert (reconciled.written, reconciled.problems) == ((), ())


@pytest.mark.parametrize("damage", ["behind", "damaged", "missing"])
def test_the_catalog_wins_over_files(repository: Repository, damage: str) -> None:
    dataset = create(repository, 1, "orders")
    old = dataset.refs.get("head")
    head = append(dataset, "more")
    files = repository.root.folder(FOLDER).refs
    match damage:
        case "behind":
            assert old is not None
            files.replace("head", old)
        case "damaged":
            files.replace("head", head)
            dataset_folder_write(repository, "refs/head", b"f1620\n")
        case _:
            files.remove("head")
    dataset.objects.put_info("alias", b"something else")
    assert repository.reconcile().written == (f"{FOLDER}/refs/head", f"{FOLDER}/info/alias")
    assert files.get("head") == head
    assert dataset.objects.get_info("alias") == b"orders"
    assert repository.reconcile().written == ()
