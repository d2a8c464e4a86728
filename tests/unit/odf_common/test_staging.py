"""The area in which slices wait."""

from __future__ import annotations

import os
from pathlib import Path

from odf_common.identity.key_pair import KeyPair
from odf_common.staging import remove_left_overs, staging_folder


def test_only_what_is_old_is_removed(tmp_path: Path) -> None:
    dataset_id = KeyPair.generate().dataset_id
    folder = staging_folder(tmp_path, dataset_id)
    folder.mkdir()
    old, fresh = folder / "old", folder / ".fresh.part"
    old.touch()
    os.utime(old, (0, 0))
    fresh.touch()
    remove_left_overs(tmp_path, dataset_id)
    assert list(folder.iterdir()) == [fresh]


def test_a_dataset_without_a_folder_has_nothing_to_remove(tmp_path: Path) -> None:
    remove_left_overs(tmp_path, KeyPair.generate().dataset_id)
