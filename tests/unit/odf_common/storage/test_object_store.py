"""What every object store promises, on a local folder, in memory and on S3."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_common.errors import CorruptedError, InvalidTextError, NotFoundError
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.storage.layout import ObjectKind
from odf_common.storage.location import open_folder
from odf_common.storage.ports import ObjectStore
from odf_common.wire.limits import MAX_BLOCK_SIZE

ABSENT = sha3_256(b"absent")


def staged(folder: Path, data: bytes) -> Path:
    path = folder / f"staged-{sha3_256(data).short}"
    path.write_bytes(data)
    return path


def put(store: ObjectStore, data: bytes) -> Multihash:
    block_hash = sha3_256(data)
    store.put_block(block_hash, data)
    return block_hash


class ObjectStoreContract:
    def test_a_block_comes_back_as_it_was_put(self, store: ObjectStore) -> None:
        block_hash = put(store, b"a block")
        store.sync(named=[(ObjectKind.BLOCKS, block_hash), (ObjectKind.DATA, ABSENT)])
        assert store.has(ObjectKind.BLOCKS, block_hash)
        assert store.size(ObjectKind.BLOCKS, block_hash) == 7
        assert store.get_block(block_hash) == b"a block"

    def test_putting_again_changes_nothing(self, store: ObjectStore) -> None:
        assert put(store, b"a block") == put(store, b"a block")
        assert list(store.hashes(ObjectKind.BLOCKS)) == [sha3_256(b"a block")]

    def test_putting_again_mends_what_a_crash_cut_short(self, store: ObjectStore) -> None:
        store.put_block(sha3_256(b"a block"), b"a bl")
        assert store.get_block(put(store, b"a block")) == b"a block"

    def test_an_empty_object_is_an_object(self, store: ObjectStore, tmp_path: Path) -> None:
        assert store.get_block(put(store, b"")) == b""
        store.put_file(ObjectKind.CHECKPOINTS, sha3_256(b""), staged(tmp_path, b""))
        assert b"".join(store.read_chunks(ObjectKind.CHECKPOINTS, sha3_256(b""))) == b""
        with store.open_file(ObjectKind.CHECKPOINTS, sha3_256(b"")) as file:
            assert file.read() == b""

    def test_kinds_do_not_mix(self, store: ObjectStore) -> None:
        block_hash = put(store, b"a block")
        assert not store.has(ObjectKind.DATA, block_hash)
        assert not store.has(ObjectKind.CHECKPOINTS, block_hash)

    def test_what_is_absent_is_named(self, store: ObjectStore) -> None:
        assert not store.has(ObjectKind.DATA, ABSENT)
        assert store.local_path(ObjectKind.DATA, ABSENT) is None
        with pytest.raises(NotFoundError, match=f"blocks/{ABSENT} "):
            store.get_block(ABSENT)
        with pytest.raises(NotFoundError, match=f"data/{ABSENT} "):
            store.size(ObjectKind.DATA, ABSENT)
        with pytest.raises(NotFoundError, match=f"data/{ABSENT} "):
            list(store.read_chunks(ObjectKind.DATA, ABSENT))
        with pytest.raises(NotFoundError, match=f"checkpoints/{ABSENT} "):
            store.open_file(ObjectKind.CHECKPOINTS, ABSENT)

    def test_a_block_may_have_the_full_size_and_not_one_byte_more(self, store: ObjectStore) -> None:
        block_hash = put(store, b"12345678")
        assert store.get_block(block_hash, max_size=8) == b"12345678"
        with pytest.raises(CorruptedError, match=str(block_hash)):
            store.get_block(block_hash, max_size=7)

    def test_a_huge_file_is_not_read_as_a_block(self, store: ObjectStore, tmp_path: Path) -> None:
        huge = tmp_path / "huge"
        with open(huge, "wb") as file:
            file.truncate(MAX_BLOCK_SIZE + 1)
        store.put_file(ObjectKind.BLOCKS, ABSENT, huge)
        with pytest.raises(CorruptedError, match=str(MAX_BLOCK_SIZE)):
            store.get_block(ABSENT)

    def test_a_staged_file_moves_to_its_address(self, store: ObjectStore, tmp_path: Path) -> None:
        data = bytes(range(256)) * 100_000  # more than one part
        path = staged(tmp_path, data)
        store.put_file(ObjectKind.DATA, sha3_256(data), path)
        assert not path.exists()
        assert store.size(ObjectKind.DATA, sha3_256(data)) == len(data)
        chunks = list(store.read_chunks(ObjectKind.DATA, sha3_256(data)))
        assert len(chunks) > 1
        assert b"".join(chunks) == data

    def test_taking_a_staged_file_can_be_repeated_after_a_crash(self, store: ObjectStore, tmp_path: Path) -> None:
        path = staged(tmp_path, b"slice")
        store.put_file(ObjectKind.DATA, sha3_256(b"slice"), path)
        store.put_file(ObjectKind.DATA, sha3_256(b"slice"), path)
        staged(tmp_path, b"slice")
        store.put_file(ObjectKind.DATA, sha3_256(b"slice"), path)
        assert not path.exists()
        assert list(store.hashes(ObjectKind.DATA)) == [sha3_256(b"slice")]

    def test_a_staged_file_that_never_was_is_named(self, store: ObjectStore, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="never-was"):
            store.put_file(ObjectKind.DATA, ABSENT, tmp_path / "never-was")

    def test_pyarrow_reads_a_slice_in_place(self, store: ObjectStore, tmp_path: Path) -> None:
        table = pa.table({"offset": list(range(10_000)), "city": ["x"] * 10_000})
        pq.write_table(table, tmp_path / "slice", row_group_size=1000)
        slice_hash = sha3_256((tmp_path / "slice").read_bytes())
        store.put_file(ObjectKind.DATA, slice_hash, tmp_path / "slice")
        with store.open_file(ObjectKind.DATA, slice_hash) as file:
            assert pq.read_table(file).equals(table)
        with store.open_file(ObjectKind.DATA, slice_hash) as file:
            assert pq.ParquetFile(file).read_row_group(7, columns=["offset"])["offset"][0].as_py() == 7000

    def test_a_file_seeks_from_start_here_and_end(self, store: ObjectStore, tmp_path: Path) -> None:
        store.put_file(ObjectKind.DATA, sha3_256(b"0123456789"), staged(tmp_path, b"0123456789"))
        with store.open_file(ObjectKind.DATA, sha3_256(b"0123456789")) as file:
            assert (file.seek(-3, 2), file.read(2), file.tell()) == (7, b"78", 9)
            assert (file.seek(-4, 1), file.read(1)) == (5, b"5")
            assert (file.seek(20), file.read(1)) == (20, b"")

    def test_all_hashes_of_a_kind_are_listed(self, store: ObjectStore) -> None:
        blocks = {put(store, bytes([number])) for number in range(20)}
        assert sorted(map(str, store.hashes(ObjectKind.BLOCKS))) == sorted(map(str, blocks))
        assert list(store.hashes(ObjectKind.DATA)) == []

    def test_an_info_file_is_replaced(self, store: ObjectStore) -> None:
        assert store.get_info("alias") is None
        store.put_info("alias", b"acme/orders")
        store.put_info("alias", b"orders")
        assert store.get_info("alias") == b"orders"

    def test_an_info_file_has_a_limit(self, store: ObjectStore) -> None:
        store.put_info("alias", bytes(MAX_BLOCK_SIZE))
        assert store.get_info("alias") == bytes(MAX_BLOCK_SIZE)
        store.put_info("alias", bytes(MAX_BLOCK_SIZE + 1))
        with pytest.raises(CorruptedError, match="more than it may have"):
            store.get_info("alias")

    @pytest.mark.parametrize("name", ["../refs/head", "", ".hidden", "a\0b"])
    def test_an_info_name_cannot_be_a_path_to_elsewhere(self, store: ObjectStore, name: str) -> None:
        with pytest.raises(InvalidTextError):
            store.put_info(name, b"")
        with pytest.raises(InvalidTextError):
            store.get_info(name)

    def test_threads_may_share_a_store(self, store: ObjectStore) -> None:
        def put_and_sync(number: int) -> Multihash:
            block_hash = put(store, bytes([number]))
            store.sync()
            return block_hash

        with ThreadPoolExecutor(8) as pool:
            for block_hash in pool.map(put_and_sync, range(50)):
                assert store.has(ObjectKind.BLOCKS, block_hash)


class TestFolder(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return open_folder(tmp_path / "dataset").objects


class TestMemory(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return open_folder("memory:").objects


@pytest.mark.slow
class TestS3(ObjectStoreContract):
    @pytest.fixture
    def store(self, s3_location: str) -> ObjectStore:
        return open_folder(s3_location).objects
