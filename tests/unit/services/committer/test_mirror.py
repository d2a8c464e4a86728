from __future__ import annotations

import pytest

from odf_common.catalog.records import RefMove
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.summary import load_summary
from odf_common.identity.multihash import Multihash
from odf_common.metadata.events import SetInfo
from odf_common.repository.repository import Dataset, Repository
from services.committer.chains import OpenChain
from services.committer.mirror import Mirror
from tests.streams import create_dataset, sealed


@pytest.fixture
def dataset(repository: Repository) -> Dataset:
    return create_dataset(repository, "cities")


def moved(repository: Repository, dataset: Dataset, text: str) -> OpenChain:
    """A chain that has moved on without its files."""
    old = MetadataChain(dataset.objects, dataset.refs).state()
    (block,), new = sealed([SetInfo(description=text)], old)
    dataset.objects.put_block(block.hash, block.data)
    repository.commit_moves([RefMove(dataset_id=dataset.entry.id, name="head", expected=old.head, new=block.hash)])
    return OpenChain(dataset.entry, dataset.objects, new)


def file_of(repository: Repository, dataset: Dataset) -> Multihash | None:
    return repository.folder_of(dataset.entry).refs.get("head")


def test_files_follow_when_it_is_time(repository: Repository, dataset: Dataset) -> None:
    mirror = Mirror(repository)
    before = file_of(repository, dataset)
    chain = moved(repository, dataset, "one")
    mirror.lag(chain, now=5.0)
    mirror.write(older_than=4.0)
    assert file_of(repository, dataset) == before
    mirror.write(older_than=5.0)
    assert file_of(repository, dataset) == chain.state.head
    assert load_summary(dataset.objects) == chain.state
    assert not mirror


def test_they_follow_the_newest_state_once(repository: Repository, dataset: Dataset) -> None:
    mirror = Mirror(repository)
    mirror.lag(moved(repository, dataset, "one"), now=1.0)
    chain = moved(repository, dataset, "two")
    mirror.lag(chain, now=2.0)
    mirror.write(older_than=1.0)
    assert load_summary(dataset.objects) == chain.state


def test_no_time_means_later(repository: Repository, dataset: Dataset) -> None:
    mirror = Mirror(repository)
    mirror.lag(moved(repository, dataset, "one"), now=1.0)
    mirror.write(older_than=2.0, seconds=-1)
    assert mirror
