"""The upload area: whole payloads or none, and no path from a message."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from odf_common.errors import MalformedBytesError, StoreUnavailableError
from odf_common.identity.did import DatasetId
from odf_common.uploads import UploadArea

ID = DatasetId(bytes(32))


@pytest.fixture
def area(tmp_path: Path) -> UploadArea:
    return UploadArea(tmp_path / "uploads")


def files(area: UploadArea) -> list[Path]:
    return [path for path in area.path(ID, "0" * 32).parent.glob("*") if path.is_file()]


def test_a_payload_lies_under_its_name_with_its_hash(area: UploadArea) -> None:
    upload = area.write(ID, [b"one ", b"payload"])
    assert area.path(ID, upload.name).read_bytes() == b"one payload"
    assert (upload.size, upload.hash.digest) == (11, hashlib.sha256(b"one payload").digest())


def test_equal_payloads_are_two_uploads(area: UploadArea) -> None:
    assert area.write(ID, [b"same"]).name != area.write(ID, [b"same"]).name


def test_one_that_is_not_finished_leaves_nothing(area: UploadArea) -> None:
    with area.writer(ID) as writer:
        writer.write(b"half of")
    assert files(area) == []


@pytest.mark.parametrize("name", ["", "../" + "0" * 32, "0" * 31, "0" * 33, "A" * 32, "0" * 31 + "/", "0" * 32 + "\n"])
def test_what_is_no_name_never_becomes_a_path(area: UploadArea, name: str) -> None:
    with pytest.raises(MalformedBytesError, match="is not the name of an upload"):
        area.path(ID, name)


def test_removing_twice_is_fine(area: UploadArea) -> None:
    upload = area.write(ID, [b"x"])
    area.remove(ID, upload.name)
    area.remove(ID, upload.name)
    assert files(area) == []


def test_what_nobody_came_for_goes_after_a_while(area: UploadArea) -> None:
    old, young = area.write(ID, [b"old"]), area.write(ID, [b"young"])
    os.utime(area.path(ID, old.name), (0, 0))
    area.remove_older_than(ID, 3600.0)
    assert files(area) == [area.path(ID, young.name)]


def test_a_folder_that_cannot_be_made_is_said_to_be_unavailable(tmp_path: Path) -> None:
    (tmp_path / "uploads").write_text("a file in the way")
    with pytest.raises(StoreUnavailableError):
        UploadArea(tmp_path / "uploads").writer(ID)


def test_a_folder_among_uploads_stays_and_hinders_nobody(area: UploadArea) -> None:
    folder = area.path(ID, "0" * 32)
    folder.mkdir(parents=True)
    old = area.write(ID, [b"old"])
    for path in (folder, area.path(ID, old.name)):
        os.utime(path, (0, 0))
    area.remove_older_than(ID, 3600.0)
    assert list(folder.parent.iterdir()) == [folder]


def test_its_size_is_that_of_all_datasets_and_of_what_is_not_finished(area: UploadArea) -> None:
    assert area.size() == 0
    area.write(ID, [b"123"])
    area.write(DatasetId(bytes(31) + b"1"), [b"45"])
    with area.writer(ID) as writer:
        writer.write(b"x" * (1 << 20))
        assert area.size() >= (1 << 20) + 5 - (1 << 17)  # what is still in memory does not count yet
    assert area.size() == 5
