from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from odf_common.chain.check import check_dataset
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import ChainState, next_block
from odf_common.chain.summary import SUMMARY, encode_summary
from odf_common.data.slice_writer import SliceWriter
from odf_common.errors import CorruptedError
from odf_common.identity.multihash import sha3_256
from odf_common.metadata.base import Model
from odf_common.metadata.events import AddData, SetInfo
from odf_common.storage.dataset_folder import DatasetFolder, local_folder
from odf_common.storage.layout import HEAD, ObjectKind
from odf_common.storage.location import open_folder
from odf_common.wire.encode import encode_block
from tests.datasets import (
    SCHEMA,
    SYSTEM_COLUMNS,
    WIDER_SCHEMA,
    append_all,
    make_dataset,
    position,
    put_slice,
    watermark,
)
from tests.unit.odf_common.chain.builders import NOON

SOME_BITS = 12
"""Of each file, in the fast suite; the slow one flips a bit of every byte."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


@pytest.fixture
def dataset(path: Path, tmp_path: Path) -> DatasetFolder:
    folder = local_folder(path)
    make_dataset(folder, tmp_path)
    return folder


def checked_place(folder: DatasetFolder) -> str | None:
    """The file that the check names; None when it finds nothing wrong."""
    try:
        check_dataset(folder.objects, folder.refs)
    except CorruptedError as error:
        return error.place
    return None


def files(path: Path) -> Iterator[Path]:
    return (file for file in sorted(path.rglob("*")) if file.is_file())


def named_when_flipped(folder: DatasetFolder, file: Path, position: int, bit: int) -> str | None:
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[position] ^= 1 << bit
    file.write_bytes(flipped)
    try:
        return checked_place(folder)
    finally:
        file.write_bytes(content)


def test_a_whole_dataset_passes_and_is_counted(dataset: DatasetFolder) -> None:
    steps: list[tuple[int, int]] = []
    checked = check_dataset(dataset.objects, dataset.refs, on_progress=lambda *step: steps.append(step))
    assert (checked.blocks, checked.slices, checked.records, checked.unknown) == (9, 3, 9, ())
    assert checked.chain == MetadataChain(dataset.objects, dataset.refs).state()
    assert steps == [(step, 18) for step in range(1, 19)]


def test_one_flipped_bit_is_found_and_its_file_named(dataset: DatasetFolder, path: Path) -> None:
    chance = random.Random(7)
    for file in files(path):
        for place in chance.sample(range(file.stat().st_size), SOME_BITS):
            assert named_when_flipped(dataset, file, place, chance.randrange(8)) == str(file.relative_to(path))


@pytest.mark.slow
def test_one_flipped_bit_anywhere_is_found_and_its_file_named(dataset: DatasetFolder, path: Path) -> None:
    chance = random.Random(8)
    for file in files(path):
        for place in range(file.stat().st_size):
            assert named_when_flipped(dataset, file, place, chance.randrange(8)) == str(file.relative_to(path))


@pytest.mark.slow
def test_a_dataset_on_s3_passes_and_a_flipped_bit_is_named(s3_location: str, tmp_path: Path) -> None:
    folder = open_folder(s3_location)
    chain = make_dataset(folder, tmp_path)
    assert check_dataset(folder.objects, folder.refs).records == 9
    head = chain.state().head
    assert head is not None
    damaged = bytearray(folder.objects.get_block(head))
    damaged[100] ^= 1
    folder.objects.put_block(head, bytes(damaged))
    assert checked_place(folder) == f"blocks/{head}"
    (slice_hash, *_) = folder.objects.hashes(ObjectKind.DATA)
    folder.objects.put_block(head, bytes(damaged[:100] + bytes([damaged[100] ^ 1]) + damaged[101:]))
    staged = tmp_path / "staged"
    staged.write_bytes(b"PAR1")
    folder.objects.put_file(ObjectKind.DATA, slice_hash, staged)
    assert checked_place(folder) == f"data/{slice_hash}"


@pytest.mark.parametrize("folder", ["data", "checkpoints", "blocks"])
def test_a_missing_file_is_named(dataset: DatasetFolder, path: Path, folder: str) -> None:
    for file in list((path / folder).iterdir()):
        content = file.read_bytes()
        file.unlink()
        named = checked_place(dataset)
        head = (path / "refs" / "head").read_text()
        assert named == ("refs/head" if file.name == head else f"{folder}/{file.name}")
        file.write_bytes(content)
    assert checked_place(dataset) is None


def test_the_head_must_exist(dataset: DatasetFolder, path: Path) -> None:
    (path / "refs" / "head").unlink()
    assert checked_place(dataset) == "refs/head"


def test_what_nothing_refers_to_is_not_looked_at(dataset: DatasetFolder, path: Path) -> None:
    for stray in ("data/junk", "blocks/.pending-0", "README", "refs/branches-of-somebody"):
        (path / stray).write_bytes(b"junk")
    assert checked_place(dataset) is None


def test_a_summary_that_is_behind_is_fine_and_one_that_contradicts_is_not(dataset: DatasetFolder) -> None:
    chain = MetadataChain(dataset.objects, dataset.refs)
    behind = encode_summary(chain.state())
    append_all(chain, [SetInfo(description="more")])
    dataset.objects.put_info(SUMMARY, behind)
    assert checked_place(dataset) is None
    dataset.objects.put_info(SUMMARY, encode_summary(chain.state().model_copy(update={"last_offset": 7})))
    assert checked_place(dataset) == "info/chain-state"


def lied(dataset: DatasetFolder, staging: Path, start: int, **lies: object) -> DatasetFolder:
    """A dataset whose last block promises a slice that is not quite what is stored."""
    chain = MetadataChain(dataset.objects, dataset.refs)
    told: Model = put_slice(dataset, staging, SCHEMA, start, 3)
    slice_ = told.model_copy(update=lies)
    event = AddData(prev_offset=8, new_data=slice_, new_watermark=watermark(30), new_source_state=position(12))
    checkpoint = chain.state().last_add_data
    assert checkpoint is not None
    assert checkpoint.checkpoint is not None
    event = event.model_copy(update={"prev_checkpoint": checkpoint.checkpoint.physical_hash})
    state = chain.state()
    data = encode_block(next_block(state, event, system_time=watermark(500)))
    block_hash = sha3_256(data)
    dataset.objects.put_block(block_hash, data)
    dataset.refs.compare_and_set(HEAD, expected=state.head, new=block_hash)
    return dataset


def test_a_slice_must_hold_what_its_block_promises(dataset: DatasetFolder, tmp_path: Path) -> None:
    folder = lied(dataset, tmp_path, 9, logical_hash=sha3_256(b"lie"))
    with pytest.raises(CorruptedError, match="logical hash"):
        check_dataset(folder.objects, folder.refs)


def test_a_slice_must_have_the_size_that_its_block_promises(dataset: DatasetFolder, tmp_path: Path) -> None:
    folder = lied(dataset, tmp_path, 9, size=1)
    with pytest.raises(CorruptedError, match="bytes, its block says 1"):
        check_dataset(folder.objects, folder.refs)


def test_a_slice_must_hold_the_promised_offsets(dataset: DatasetFolder, tmp_path: Path) -> None:
    real = put_slice(dataset, tmp_path, SCHEMA, 9, 3)
    folder = lied(dataset, tmp_path, 100, offset_interval=real.offset_interval)
    with pytest.raises(CorruptedError, match="offset 9 was promised where its column 'offset' has 100"):
        check_dataset(folder.objects, folder.refs)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (pa.schema([*SYSTEM_COLUMNS, pa.field("city", pa.string())]), "no column 'population'"),
        (WIDER_SCHEMA.set(5, pa.field("population", pa.string())), "its column 'population' holds String"),
    ],
)
def test_a_slice_must_fit_the_schema(dataset: DatasetFolder, tmp_path: Path, columns: pa.Schema, reason: str) -> None:
    chain = MetadataChain(dataset.objects, dataset.refs)
    last = chain.state().last_add_data
    assert last is not None
    assert last.checkpoint is not None
    with SliceWriter(tmp_path / "slice.pending", columns) as writer:
        writer.write(pa.RecordBatch.from_arrays([a_column(column) for column in columns], schema=columns))
    written = writer.close()
    dataset.objects.put_file(ObjectKind.DATA, written.physical_hash, written.path)
    event = AddData(
        prev_checkpoint=last.checkpoint.physical_hash,
        prev_offset=8,
        new_data=written.to_data_slice(),
        new_watermark=watermark(30),
    )
    append_all(chain, [event])
    with pytest.raises(CorruptedError, match=reason):
        check_dataset(dataset.objects, dataset.refs)


def a_column(column: pa.Field) -> pa.Array:
    """One value, that of the next offset where it is a number."""
    if pa.types.is_string(column.type):
        return pa.array(["text"])
    return pa.array([9], pa.int64()).cast(column.type)


def test_a_block_that_breaks_a_rule_is_named_with_the_rule(dataset: DatasetFolder) -> None:
    state = MetadataChain(dataset.objects, dataset.refs).state()
    early = next_block(state, SetInfo(description="early"), system_time=NOON)
    data = encode_block(early)
    dataset.objects.put_block(sha3_256(data), data)
    dataset.refs.compare_and_set(HEAD, expected=state.head, new=sha3_256(data))
    with pytest.raises(CorruptedError, match=r"\[SystemTimeIsNotMonotonic\]") as broken:
        check_dataset(dataset.objects, dataset.refs)
    assert broken.value.place == f"blocks/{sha3_256(data)}"


def test_an_empty_folder_is_no_dataset(tmp_path: Path) -> None:
    folder = local_folder(tmp_path)
    assert checked_place(folder) == "refs/head"
    assert MetadataChain(folder.objects, folder.refs).state() == ChainState()
