"""Every block of every move of a head is told, oldest first, at least once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.errors import FencedError
from odf_common.catalog.records import RefMove
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import ChainState
from odf_common.errors import StoreUnavailableError
from odf_common.identity.multihash import Multihash
from odf_common.messages.block_appended import BlockAppended
from odf_common.metadata.events import SetInfo
from odf_common.repository.repository import Dataset, Repository
from odf_common.storage.folder_objects import FolderObjects
from odf_common.wire.encoded_block import EncodedBlock
from services.committer.history import new_blocks
from services.committer.outbox import Outbox
from tests.streams import create_dataset, sealed


class Post:
    """Notes what is told, and when it was waited for."""

    def __init__(self, repository: Repository, *, is_down: bool = False) -> None:
        with repository.catalog.begin() as transaction:
            epoch = transaction.begin_epoch("committer")
        self.told: list[BlockAppended] = []
        self.safe = 0
        self.is_down = is_down
        self.outbox = Outbox(repository, epoch=epoch, tell=self.told.append, wait=self.wait)

    def wait(self) -> None:
        if self.is_down:
            raise StoreUnavailableError("the broker is gone")
        self.safe = len(self.told)

    def of(self, dataset: Dataset) -> list[Multihash]:
        return [event.data.block_hash for event in self.told if event.data.dataset_id == dataset.entry.id]


@pytest.fixture
def dataset(repository: Repository) -> Dataset:
    return create_dataset(repository, "cities")


def state(dataset: Dataset) -> ChainState:
    return MetadataChain(dataset.objects, dataset.refs).state()


def append(dataset: Dataset, *texts: str) -> None:
    blocks, _ = sealed([SetInfo(description=text) for text in texts], state(dataset))
    MetadataChain(dataset.objects, dataset.refs).append(blocks)


def hashes(dataset: Dataset) -> list[Multihash]:
    return [block.hash for block in MetadataChain(dataset.objects, dataset.refs).blocks()][::-1]


def test_all_blocks_are_told_whoever_appended_them(repository: Repository, dataset: Dataset) -> None:
    post = Post(repository)
    assert post.outbox.publish({}) == 2
    append(dataset, "one", "two", "three")
    append(dataset, "four")
    assert post.outbox.publish({}) == 4
    assert post.of(dataset) == hashes(dataset)
    assert post.safe == 6
    assert {event.data.dataset_alias for event in post.told} == {"cities"}


def test_what_was_told_is_not_told_again(repository: Repository, dataset: Dataset) -> None:
    post = Post(repository)
    post.outbox.publish({})
    assert post.outbox.publish({}) == 0
    post.outbox.mark()
    assert not post.outbox.has_marks
    assert repository.catalog.pending_journal(limit=10) == []
    assert Post(repository).outbox.publish({}) == 0


def test_what_was_not_marked_is_told_again_by_the_next(repository: Repository, dataset: Dataset) -> None:
    first, second = Post(repository), None
    first.outbox.publish({})
    second = Post(repository)
    second.outbox.publish({})
    assert second.told == first.told


def test_what_the_broker_did_not_take_comes_again(repository: Repository, dataset: Dataset) -> None:
    post = Post(repository, is_down=True)
    with pytest.raises(StoreUnavailableError):
        post.outbox.publish({})
    assert not post.outbox.has_marks
    post.is_down = False
    assert post.outbox.publish({}) == 2
    assert post.of(dataset)[2:] == hashes(dataset)


def test_blocks_in_memory_are_not_read(repository: Repository, dataset: Dataset) -> None:
    post = Post(repository)
    post.outbox.publish({})
    blocks, _ = sealed([SetInfo(description="one"), SetInfo(description="two")], state(dataset))
    MetadataChain(dataset.objects, dataset.refs).append(blocks)
    with mock.patch.object(FolderObjects, "get_block", side_effect=AssertionError):
        assert post.outbox.publish({block.hash: block for block in blocks}) == 2
    assert post.of(dataset) == hashes(dataset)


def test_only_the_head_is_told_of(repository: Repository, dataset: Dataset) -> None:
    post = Post(repository)
    post.outbox.publish({})
    head = dataset.refs.get("head")
    assert head is not None
    dataset.refs.compare_and_set("branches/review", expected=None, new=head)
    assert post.outbox.publish({}) == 0
    assert post.outbox.has_marks


def test_a_deleted_dataset_is_left_out(repository: Repository, dataset: Dataset) -> None:
    other = create_dataset(repository, "other")
    repository.delete(dataset.entry.id)
    post = Post(repository)
    assert post.outbox.publish({}) == 2
    assert post.of(other) == hashes(other)


def test_a_damaged_dataset_does_not_keep_the_others_back(
    repository: Repository, dataset: Dataset, tmp_path: Path
) -> None:
    block = tmp_path / "datasets" / dataset.entry.location / "blocks" / str(dataset.refs.get("head"))
    whole = block.read_bytes()
    block.write_bytes(b"damage")
    other = create_dataset(repository, "other")
    post = Post(repository)
    assert post.outbox.publish({}) == 2
    assert post.of(other) == hashes(other)
    assert post.outbox.publish({}) == 0
    post.outbox.mark()

    block.write_bytes(whole)
    later = Post(repository)
    later.outbox.publish({})
    assert later.of(dataset) == hashes(dataset)
    assert later.of(other) == []


def test_a_fenced_one_is_silent(repository: Repository, dataset: Dataset) -> None:
    post, _ = Post(repository), Post(repository)
    with pytest.raises(FencedError):
        post.outbox.publish({})
    assert post.told == []


def test_a_long_journal_comes_in_pages(repository: Repository, dataset: Dataset, catalog: Catalog) -> None:
    for number in range(7):
        append(dataset, f"{number}")
    post = Post(repository)
    with mock.patch("services.committer.outbox._PAGE", 3), mock.patch("services.committer.outbox._BLOCKS_IN_FLIGHT", 1):
        assert post.outbox.publish({}) == 9
    assert post.of(dataset) == hashes(dataset)


class TestMovedAside:
    """A head that somebody set back or to another branch: what is new is told, from where the chains part."""

    def test_to_a_branch(self, repository: Repository, dataset: Dataset) -> None:
        fork = state(dataset)
        append(dataset, "one", "two")
        blocks, _ = sealed([SetInfo(description=text) for text in ("other", "way")], fork)
        move(repository, dataset, [block.hash for block in blocks][-1], blocks=blocks)
        post = Post(repository)
        post.outbox.publish({})
        assert post.of(dataset)[-2:] == [block.hash for block in blocks]
        assert len(post.told) == 6

    def test_back(self, repository: Repository, dataset: Dataset) -> None:
        old = hashes(dataset)
        append(dataset, "one", "two")
        move(repository, dataset, old[0], blocks=[])
        post = Post(repository)
        post.outbox.publish({})
        assert len(post.told) == 4

    def test_nowhere(self, dataset: Dataset) -> None:
        head = hashes(dataset)[-1]
        assert list(new_blocks(dataset.objects, {}, old=head, new=head)) == []


def move(repository: Repository, dataset: Dataset, new: Multihash, *, blocks: Sequence[EncodedBlock]) -> None:
    for block in blocks:
        dataset.objects.put_block(block.hash, block.data)
    head = dataset.refs.get("head")
    repository.move_refs([RefMove(dataset_id=dataset.entry.id, name="head", expected=head, new=new)])
