"""What a process asks for that follows the catalog: heads of many datasets, its epoch, what is new in the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.errors import FencedError
from odf_common.repository.repository import Repository
from tests.streams import create_dataset


def test_heads_are_those_of_datasets_that_exist(catalog: Catalog, tmp_path: Path) -> None:
    repository = Repository.at(tmp_path / "datasets", catalog)
    one, two = create_dataset(repository, "one"), create_dataset(repository, "two")
    repository.delete(two.entry.id)
    assert catalog.heads([one.entry.id, two.entry.id]) == {one.entry.id: one.refs.get("head")}
    assert catalog.heads([]) == {}


def test_an_epoch_ends_when_the_next_begins(catalog: Catalog) -> None:
    with catalog.begin() as transaction:
        epoch = transaction.begin_epoch("part")
    catalog.check_epoch(epoch)
    with catalog.begin() as transaction:
        transaction.begin_epoch("other part")
    catalog.check_epoch(epoch)
    with catalog.begin() as transaction:
        transaction.begin_epoch("part")
    with pytest.raises(FencedError, match="epoch 1"):
        catalog.check_epoch(epoch)


def test_the_journal_is_read_on_from_where_one_was(catalog: Catalog, tmp_path: Path) -> None:
    repository = Repository.at(tmp_path / "datasets", catalog)
    create_dataset(repository, "one")
    seen = catalog.pending_journal(limit=100)
    create_dataset(repository, "two")
    new = catalog.pending_journal(limit=100, after=seen[-1].id)
    assert [*seen, *new] == catalog.pending_journal(limit=100)
    assert len(new) == len(seen)
