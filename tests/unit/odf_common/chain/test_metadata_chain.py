from __future__ import annotations

from pathlib import Path

import pytest

from odf_common.chain.check import check_dataset
from odf_common.chain.errors import (
    HashMismatchError,
    ObjectNotFoundError,
    PrevBlockNotFoundError,
    WatermarkIsNotMonotonicError,
)
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import ChainState, next_block
from odf_common.chain.summary import SUMMARY, decode_summary
from odf_common.errors import CorruptedError, RefCASFailedError
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.metadata.base import ExtraAttributes
from odf_common.metadata.data_schema import DataSchema
from odf_common.metadata.events import MetadataEvent, SetDataSchema, SetInfo
from odf_common.storage.dataset_folder import DatasetFolder, local_folder
from odf_common.storage.layout import HEAD, ObjectKind
from odf_common.wire.encode import seal
from odf_common.wire.encoded_block import EncodedBlock
from tests.unit.odf_common.chain.builders import (
    EARLIER,
    NOON,
    a_push_source,
    a_schema,
    a_seed,
    a_state,
    add_data,
    mh,
)


@pytest.fixture
def folder(tmp_path: Path) -> DatasetFolder:
    return local_folder(tmp_path / "dataset")


def opened(folder: DatasetFolder) -> MetadataChain:
    return MetadataChain(folder.objects, folder.refs)


def sealed(chain: ChainState, *events: MetadataEvent) -> list[EncodedBlock]:
    blocks = []
    for event in events:
        blocks.append(seal(next_block(chain, event, system_time=NOON)))
        chain = chain.followed_by(blocks[-1].block, blocks[-1].hash)
    return blocks


def append(chain: MetadataChain, *events: MetadataEvent) -> tuple[Multihash, ...]:
    return chain.append(sealed(chain.state(), *events), objects_exist=False)


EVENTS = (a_seed(), a_push_source(), a_schema(), add_data(0, 9, new_watermark=NOON, new_source_state=a_state("10")))


def test_what_was_appended_is_read_back_newest_first(folder: DatasetFolder) -> None:
    hashes = append(opened(folder), *EVENTS)
    blocks = list(opened(folder).blocks())
    assert [block.hash for block in blocks] == list(reversed(hashes))
    assert [block.block.event for block in blocks] == list(reversed(EVENTS))


def test_the_state_of_a_chain_is_the_same_however_it_was_opened(folder: DatasetFolder) -> None:
    chain = opened(folder)
    append(chain, *EVENTS)
    known, with_summary = chain.state(), opened(folder).state()
    folder.objects.put_info(SUMMARY, b"")
    assert known == with_summary == opened(folder).state()
    assert known.last_offset == 9
    assert known.watermark == NOON
    assert known.source_state("default") == a_state("10")


def test_a_missing_or_damaged_summary_is_made_anew(folder: DatasetFolder) -> None:
    append(opened(folder), *EVENTS)
    good = folder.objects.get_info(SUMMARY)
    assert good is not None
    for damaged in (b"", b"{}", b"\xff", good[:-10], good.replace(b'"lastOffset":9', b'"lastOffset":8')):
        folder.objects.put_info(SUMMARY, damaged)
        assert opened(folder).state().last_offset == 9
        assert folder.objects.get_info(SUMMARY) == good


def test_a_summary_that_is_behind_costs_only_the_blocks_behind_it(folder: DatasetFolder, tmp_path: Path) -> None:
    chain = opened(folder)
    seed, *_ = append(chain, *EVENTS)
    behind = folder.objects.get_info(SUMMARY)
    assert behind is not None
    append(chain, add_data(10, 19, new_watermark=NOON))
    folder.objects.put_info(SUMMARY, behind)
    (tmp_path / "dataset" / "blocks" / str(seed)).unlink()
    assert opened(folder).state().last_offset == 19


def test_a_summary_of_another_fork_is_not_believed(folder: DatasetFolder, tmp_path: Path) -> None:
    append(opened(folder), *EVENTS)
    other = local_folder(tmp_path / "other")
    append(opened(other), a_seed(), SetInfo(description="another chain"))
    foreign = other.objects.get_info(SUMMARY)
    assert foreign is not None
    folder.objects.put_info(SUMMARY, foreign)
    assert opened(folder).state().last_offset == 9


def test_blocks_appended_together_become_visible_together_or_not_at_all(folder: DatasetFolder) -> None:
    chain = opened(folder)
    append(chain, *EVENTS)
    head = folder.refs.get(HEAD)
    with pytest.raises(WatermarkIsNotMonotonicError):
        append(chain, SetInfo(description="fine"), add_data(10, new_watermark=EARLIER))
    assert folder.refs.get(HEAD) == head


def test_of_two_writers_with_the_same_head_one_must_reload(folder: DatasetFolder) -> None:
    append(opened(folder), a_seed())
    first, second = opened(folder), opened(folder)
    late = sealed(second.state(), SetInfo(description="second"))
    append(first, SetInfo(description="first"))
    with pytest.raises(RefCASFailedError):
        second.append(late)
    append(second, SetInfo(description="second"))
    assert len(list(first.blocks())) == 3


def test_a_second_seed_in_front_of_a_chain_is_a_lost_race(folder: DatasetFolder) -> None:
    append(opened(folder), a_seed())
    with pytest.raises(RefCASFailedError):
        opened(folder).append(sealed(ChainState(), a_seed()))


def test_a_block_that_continues_nothing_we_have_is_refused(folder: DatasetFolder) -> None:
    append(opened(folder), a_seed())
    stranger = ChainState(head=mh("stranger"), sequence_number=0, system_time=NOON)
    with pytest.raises(PrevBlockNotFoundError):
        opened(folder).append(sealed(stranger, SetInfo(description="x")))


def test_a_block_must_hash_to_what_was_expected(folder: DatasetFolder) -> None:
    chain = opened(folder)
    (block,) = sealed(chain.state(), a_seed())
    with pytest.raises(HashMismatchError):
        chain.append([block], expected_hashes=[mh("another block")])
    assert chain.append([block], expected_hashes=[block.hash]) == (block.hash,)


def test_appending_nothing_changes_nothing(folder: DatasetFolder) -> None:
    assert opened(folder).append([]) == ()


def test_attributes_written_by_others_survive_the_summary(folder: DatasetFolder) -> None:
    spaced = ExtraAttributes(entries='{"example.org/b": 1, "example.org/a": 2}')
    schema = DataSchema(fields=a_schema().schema_.fields, extra=spaced)  # type: ignore[union-attr]
    append(opened(folder), a_seed(), SetDataSchema(schema_=schema))
    summary = folder.objects.get_info(SUMMARY)
    assert summary is not None
    assert decode_summary(summary) == opened(folder).state()
    assert check_dataset(folder.objects, folder.refs).blocks == 2


def test_a_block_that_holds_nothing_readable_is_named(folder: DatasetFolder) -> None:
    append(opened(folder), a_seed())
    junk = b"neither a block nor anything else"
    folder.objects.put_block(sha3_256(junk), junk)
    folder.refs.compare_and_set(HEAD, expected=folder.refs.get(HEAD), new=sha3_256(junk))
    with pytest.raises(CorruptedError, match="blocks/"):
        opened(folder).state()


def test_an_event_must_not_name_files_that_are_missing_or_of_another_size(
    folder: DatasetFolder, tmp_path: Path
) -> None:
    chain = opened(folder)
    append(chain, *EVENTS[:3])
    blocks = sealed(chain.state(), add_data(0, 9))
    with pytest.raises(ObjectNotFoundError, match="not stored"):
        chain.append(blocks)
    staged = tmp_path / "staged"
    staged.write_bytes(b"cut short")
    folder.objects.put_file(ObjectKind.DATA, mh("physical 0"), staged)
    with pytest.raises(ObjectNotFoundError, match="has 9 bytes"):
        chain.append(blocks)


def test_a_chain_with_a_missing_block_names_it(folder: DatasetFolder, tmp_path: Path) -> None:
    _, middle, _ = append(opened(folder), *EVENTS[:3])
    folder.objects.put_info(SUMMARY, b"")
    (tmp_path / "dataset" / "blocks" / str(middle)).unlink()
    with pytest.raises(CorruptedError, match=str(middle)):
        opened(folder).state()


def test_an_empty_folder_is_an_empty_chain(folder: DatasetFolder) -> None:
    assert opened(folder).state() == ChainState()
    assert list(opened(folder).blocks()) == []
