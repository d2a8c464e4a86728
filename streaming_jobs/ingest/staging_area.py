"""Slices on their way to the committer: written, durable, under the names that it looks for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from odf_common.crash_points import crash_point
from odf_common.data.slice_writer import SliceWriter
from odf_common.identity.did import DatasetId
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
from odf_common.staging import staged_slice, staging_folder
from odf_common.storage.files import sync_path


class StagingArea:
    """Of one dataset."""

    def __init__(self, staging: Path, dataset_id: DatasetId) -> None:
        self._staging = staging
        self._dataset_id = dataset_id
        self.folder = staging_folder(staging, dataset_id)
        self.folder.mkdir(parents=True, exist_ok=True)

    def stage(self, rows: pa.Table, vocabulary: DatasetVocabulary) -> DataSlice:
        """Write rows, durably, to where the committer looks for them."""
        crash_point("job.before-slice")
        part = self.folder / f".{uuid4().hex}.part"
        try:
            with SliceWriter(part, rows.schema, vocabulary=vocabulary) as writer:
                for batch in rows.combine_chunks().to_batches():
                    writer.write(batch)
            staged = writer.close().to_data_slice()
            sync_path(part)
            part.replace(staged_slice(self._staging, self._dataset_id, staged.physical_hash))
            sync_path(self.folder)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        crash_point("job.after-slice")
        return staged

    def discard(self, staged: DataSlice) -> None:
        """Remove a slice that nobody will be told of."""
        with suppress(OSError):
            staged_slice(self._staging, self._dataset_id, staged.physical_hash).unlink(missing_ok=True)
