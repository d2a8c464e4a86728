"""What only a local folder can do wrong."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

import pytest
from multiformats import multibase

from odf_common.errors import CorruptedError, StoreUnavailableError
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.storage.folder_objects import FolderObjects
from odf_common.storage.layout import ObjectKind

BLOCK = sha3_256(b"a block")


@pytest.fixture
def store(tmp_path: Path) -> FolderObjects:
    return FolderObjects(tmp_path / "dataset")


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    folder = tmp_path / "dataset" / "blocks"
    folder.mkdir(parents=True)
    return folder


class Synced:
    """Stands in for the system's fsync and notes what was synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[Path] = []
        self.is_failing = False
        monkeypatch.setattr("os.fsync", self)

    def __call__(self, descriptor: int) -> None:
        if self.is_failing:
            raise OSError(errno.EIO, "Input/output error")
        self.paths.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Synced:
    return Synced(monkeypatch)


@pytest.mark.parametrize("encoding", ["base16upper", "base58btc", "base64url"])
def test_a_hash_is_found_in_another_spelling(store: FolderObjects, blocks: Path, encoding: str) -> None:
    (blocks / multibase.encode(BLOCK.to_bytes(), encoding)).write_bytes(b"a block")
    assert store.has(ObjectKind.BLOCKS, BLOCK)
    assert store.get_block(BLOCK) == b"a block"
    assert list(store.hashes(ObjectKind.BLOCKS)) == [BLOCK]


def test_strangers_and_staging_files_are_not_listed(store: FolderObjects, blocks: Path) -> None:
    store.put_block(BLOCK, b"a block")
    for name in (".pending-0123", "README", "f1620", f"{BLOCK}.bak"):
        (blocks / name).write_bytes(b"")
    assert list(store.hashes(ObjectKind.BLOCKS)) == [BLOCK]


def test_a_pipe_or_folder_in_place_of_a_block_does_not_block_the_reader(store: FolderObjects, blocks: Path) -> None:
    os.mkfifo(blocks / str(BLOCK))
    with pytest.raises(CorruptedError, match="not a file"):
        store.get_block(BLOCK)
    (blocks / str(sha3_256(b"x"))).mkdir()
    with pytest.raises(CorruptedError, match="not a file"):
        store.get_block(sha3_256(b"x"))


def test_a_pipe_folder_or_socket_in_place_of_an_info_file_does_not_block_the_reader(
    tmp_path: Path, store: FolderObjects
) -> None:
    store.put_info("alias", b"orders")
    info = tmp_path / "dataset/info"
    os.mkfifo(info / "pipe")
    (info / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(info / "socket"))
        for name in ("pipe", "folder", "socket"):
            with pytest.raises(CorruptedError, match="not a file"):
                store.get_info(name)


def test_everything_put_is_synced_once_files_before_folders(
    tmp_path: Path, store: FolderObjects, synced: Synced
) -> None:
    staged = tmp_path / "staged"
    staged.write_bytes(b"slice")
    store.put_block(BLOCK, b"a block")
    store.put_block(BLOCK, b"a block")
    store.put_file(ObjectKind.DATA, sha3_256(b"slice"), staged)
    assert synced.paths == []
    store.sync()
    root = tmp_path / "dataset"
    addresses = {root / "blocks" / str(BLOCK), root / "data" / str(sha3_256(b"slice"))}
    assert set(synced.paths[:2]) == addresses
    assert sorted(synced.paths[2:]) == [tmp_path, root, root / "blocks", root / "data"]
    store.sync()
    assert len(synced.paths) == 6


def test_what_others_have_put_is_synced_if_named(tmp_path: Path, store: FolderObjects, synced: Synced) -> None:
    FolderObjects(tmp_path / "dataset").put_block(BLOCK, b"a block")
    store.sync()
    assert synced.paths == []
    store.sync(named=[(ObjectKind.BLOCKS, BLOCK), (ObjectKind.DATA, BLOCK)])
    root = tmp_path / "dataset"
    assert synced.paths[0] == root / "blocks" / str(BLOCK)
    assert sorted(synced.paths[1:]) == [tmp_path, root, root / "blocks"]


def test_folders_that_others_have_made_are_synced_once(tmp_path: Path, store: FolderObjects, synced: Synced) -> None:
    store.put_block(BLOCK, b"block")
    store.sync()
    synced.paths.clear()
    root = tmp_path / "dataset"
    again = FolderObjects(root)
    for _ in range(2):
        again.put_block(BLOCK, b"block")
        again.sync()
    assert sorted(synced.paths[1:4]) == [tmp_path, root, root / "blocks"]
    assert synced.paths[4:] == [root / "blocks" / str(BLOCK), root / "blocks"]


def test_many_files_are_synced_too(store: FolderObjects, synced: Synced) -> None:
    for number in range(100):
        store.put_block(sha3_256(bytes([number])), bytes([number]))
    store.sync()
    assert len({path for path in synced.paths if path.name.startswith("f1620")}) == 100


def test_a_failed_sync_is_not_forgotten(store: FolderObjects, synced: Synced) -> None:
    store.put_block(BLOCK, b"a block")
    synced.is_failing = True
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="Input/output error"):
            store.sync()


def test_what_was_deleted_in_the_meantime_need_not_be_synced(store: FolderObjects, blocks: Path) -> None:
    store.put_block(BLOCK, b"a block")
    (blocks / str(BLOCK)).unlink()
    store.sync()


def test_a_staged_file_of_another_file_system_is_copied(
    tmp_path: Path, store: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = tmp_path / "staged"
    staged.write_bytes(b"slice" * 1_000_000)
    rename = os.replace

    def only_within_a_folder(source: Path, target: Path) -> None:
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    monkeypatch.setattr("os.replace", only_within_a_folder)
    store.put_file(ObjectKind.DATA, BLOCK, staged)
    assert b"".join(store.read_chunks(ObjectKind.DATA, BLOCK)) == b"slice" * 1_000_000
    assert [path.name for path in (tmp_path / "dataset/data").iterdir()] == [str(BLOCK)]
    assert not staged.exists()


def test_what_dead_writers_left_is_removed_and_what_living_ones_write_is_not(
    store: FolderObjects, blocks: Path
) -> None:
    store.put_block(BLOCK, b"a block")
    dead, living = blocks / ".pending-dead", blocks / ".pending-living"
    for path in (dead, living):
        path.write_bytes(b"")
    yesterday = time.time() - 86_400
    for path in (dead, blocks / str(BLOCK)):
        os.utime(path, (yesterday, yesterday))
    store.remove_left_overs()
    assert sorted(path.name for path in blocks.iterdir()) == [".pending-living", str(BLOCK)]


def test_a_write_that_fails_leaves_nothing_behind(
    store: FolderObjects, blocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_source: Path, _target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(StoreUnavailableError, match="No space left"):
        store.put_block(BLOCK, b"a block")
    assert list(blocks.iterdir()) == []


def test_an_unusual_hash_has_an_address_too(store: FolderObjects) -> None:
    short = Multihash(0x00, b"\x01\x02")
    store.put_block(short, b"x")
    assert store.get_block(short) == b"x"
