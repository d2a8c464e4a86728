"""The area in which finished slices wait for their commit. One folder for each dataset, one file for each slice."""

from __future__ import annotations

from pathlib import Path

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash


def staging_folder(staging: Path, dataset_id: DatasetId) -> Path:
    """Where the slices of a dataset wait."""
    return staging / dataset_id.multibase


def staged_slice(staging: Path, dataset_id: DatasetId, physical_hash: Multihash) -> Path:
    """Where a slice waits: its name follows from its bytes, so no message has to carry a path."""
    return staging_folder(staging, dataset_id) / str(physical_hash)
