"""Merge strategies over Arrow tables: what a batch changes in a dataset. The reference for every other form of them."""

from odf_common.ingest.merge.check import check_merge, check_merge_columns, takes_operations
from odf_common.ingest.merge.keys import check_key_type, merge_keys
from odf_common.ingest.merge.latest import TableRows, aligned, latest_rows
from odf_common.ingest.merge.merged import (
    KeyIndex,
    LatestRows,
    Merged,
    MergeState,
    RefusedRowsError,
    SnapshotRefusedError,
)
from odf_common.ingest.merge.strategies import merge

__all__ = [
    "KeyIndex",
    "LatestRows",
    "MergeState",
    "Merged",
    "RefusedRowsError",
    "SnapshotRefusedError",
    "TableRows",
    "aligned",
    "check_key_type",
    "check_merge",
    "check_merge_columns",
    "latest_rows",
    "merge",
    "merge_keys",
    "takes_operations",
]
