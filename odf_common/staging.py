"""The area in which finished slices wait for their commit. One folder for each dataset, one file for each slice."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash


def staging_folder(staging: Path, dataset_id: DatasetId) -> Path:
    """Where the slices of a dataset wait."""
    return staging / dataset_id.multibase


def staged_slice(staging: Path, dataset_id: DatasetId, physical_hash: Multihash) -> Path:
    """Where a slice waits: its name follows from its bytes, so no message has to carry a path."""
    return staging_folder(staging, dataset_id) / str(physical_hash)


def remove_left_overs(staging: Path, dataset_id: DatasetId, *, older_than_s: float = 3600.0) -> None:
    """Delete what batches that were rejected, or never finished, left behind.

    A slice that still waits for a committer which was away that long is missed by it, and made again by the job.
    """
    oldest = time.time() - older_than_s
    for path in staging_folder(staging, dataset_id).glob("*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest:
                path.unlink()
