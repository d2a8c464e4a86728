"""A writer is killed at each step of an append: what is visible is the old state or the new one, whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tests
from odf_common.repository.recovery import reconcile
from odf_common.repository.repository import Repository
from odf_common.storage.layout import ObjectKind
from tests.unit.odf_common.repository import crashing_committer
from tests.unit.odf_common.repository.chains import an_id, append, create

REPOSITORY_ROOT = Path(tests.__file__).parents[1]

BEFORE_THE_COMMIT = [
    "odf_common.storage.folder_objects.replace_file",
    "odf_common.storage.folder_objects.FolderObjects.sync",
    "odf_common.catalog.catalog.CatalogTransaction",
    "odf_common.catalog.transaction.CatalogTransaction.record",
]
AFTER_THE_COMMIT = [
    "odf_common.storage.folder_refs.FolderRefs.compare_and_set",
    "odf_common.storage.folder_refs.replace_file",
]


@pytest.mark.slow
@pytest.mark.parametrize("point", [*BEFORE_THE_COMMIT, *AFTER_THE_COMMIT])
def test_a_killed_writer_leaves_a_whole_state(local_repository: Repository, tmp_path: Path, point: str) -> None:
    dataset = create(local_repository, 1, "orders")
    old = dataset.refs.get("head")
    moves_before = len(moves_of(local_repository))
    files = local_repository.root.folder(an_id(1).multibase).refs

    crash(tmp_path, point)

    head = dataset.refs.get("head")
    assert head is not None
    assert (head != old) == (point in AFTER_THE_COMMIT)
    assert len(moves_of(local_repository)) - moves_before == (head != old)
    assert dataset.objects.has(ObjectKind.BLOCKS, head)
    assert files.get("head") == old
    assert bool(reconcile(local_repository).written) == (head != old)
    assert files.get("head") == head
    appended = append(dataset, "life goes on")
    assert files.get("head") == appended


def moves_of(repository: Repository) -> list[int]:
    return [entry.id for entry in repository.catalog.pending_journal(limit=100) if entry.record.kind == "RefMoved"]


def crash(folder: Path, point: str) -> None:
    arguments = [str(folder / "datasets"), f"sqlite:///{folder}/catalog.db", point]
    command = [sys.executable, "-m", crashing_committer.__name__, *arguments]
    assert subprocess.run(command, check=False, cwd=REPOSITORY_ROOT).returncode == -signal.SIGKILL
