"""The live latest rows of a dataset, for the Snapshot strategy: a file of them, and the merge with a new snapshot."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
from odf_common.storage.files import sync_path
from streaming_jobs.ingest.state.fold import Fold
from streaming_jobs.ingest.state.progress import OnProgress, Reading
from streaming_jobs.ingest.state.row_file import RowFile
from streaming_jobs.ingest.state.slices import Unread, unread_slices
from streaming_jobs.ingest.state.snapshot_merge import merged_snapshot
from streaming_jobs.ingest.state.store import Mark

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.ingest.merge import Merged
    from odf_common.metadata.sources import MergeStrategySnapshot
    from odf_common.storage.ports import ObjectStore

_DESCRIPTION = "state.json"
_LOCK = "lock"
_MIN_ROWS = 5_000_000
"""Of slices, folded in at once; more where the state is larger, as each time it is written anew."""
_LAZY_SHARE = 4
"""Rows of other sources wait until they are so much of the state, or until a snapshot comes."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Described:
    """What the folder says of itself."""

    file: str
    digest: str
    mark: Mark


class SnapshotState:
    """A folder with a file of rows, replaced as a whole. Used by one thread.

    Slices are read into it only after their commit, so proposals leave nothing behind.
    """

    def __init__(self, folder: Path, primary_key: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._primary_key = tuple(primary_key)
        self._lock = _locked(folder / _LOCK)
        self._mark = Mark()
        self._rows: RowFile | None = None
        self._objects: ObjectStore | None = None
        self._vocabulary = DatasetVocabulary()
        self._proposed: list[Unread] = []
        self._unread: list[Unread] = []
        self._is_merged = False
        self._load()

    @property
    def num_rows(self) -> int:
        """Live latest rows, without those of slices that were not read yet."""
        return 0 if self._rows is None else self._rows.num_rows

    def merge(self, strategy: MergeStrategySnapshot, parts: Iterable[pa.Table]) -> Iterator[Merged]:
        """What a snapshot changes, part by part in the final order; together they are what `merge` makes of it.

        `parts` are the rows of the snapshot in their order, with data columns in final types. All counts are in the
        first part. SnapshotRefusedError when the snapshot contradicts itself. Nothing of the dataset may be in flight.
        """
        if self._proposed:
            raise ValueError("a snapshot can only be merged when everything before it is committed")
        self._read()
        self._is_merged = True
        area = self._folder / "merge"
        shutil.rmtree(area, ignore_errors=True)
        area.mkdir()
        try:
            yield from merged_snapshot(
                strategy, parts, self._rows, area=area, event_time=self._vocabulary.event_time_column
            )
        finally:
            shutil.rmtree(area, ignore_errors=True)

    def propose(self, _: pa.Table, proposed: DataSlice) -> None:
        """Expect a slice."""
        self._proposed.append(Unread(proposed, self._vocabulary))

    def withdraw(self, offset: int) -> None:
        """Forget what was proposed from an offset on."""
        self._proposed = [each for each in self._proposed if each.slice.offset_interval.start < offset]

    def committed(self, next_offset: int) -> None:
        """Take slices over that end before this offset: now, if they are a snapshot or many rows, else later."""
        self._unread += [each for each in self._proposed if each.next_offset <= next_offset]
        self._proposed = [each for each in self._proposed if each.next_offset > next_offset]
        rows = sum(each.rows for each in self._unread)
        is_snapshot = self._is_merged and not self._proposed
        if is_snapshot or rows > max(self.num_rows // _LAZY_SHARE, _MIN_ROWS // 10):
            self._read()
            self._is_merged = self._is_merged and not is_snapshot

    def catch_up(
        self,
        chain: MetadataChain,
        objects: ObjectStore,
        vocabulary: DatasetVocabulary,
        on_progress: OnProgress | None,
    ) -> None:
        """Read what the chain has and the file has not."""
        self._objects, self._vocabulary = objects, vocabulary
        unread = unread_slices(chain, self._mark, vocabulary)
        if unread is None:
            _log.warning("state does not belong to the chain as it is: making it anew", path=str(self._folder))
            self._clear()
            unread = unread_slices(chain, self._mark, vocabulary) or []
        self._unread, self._proposed = unread, []
        total = sum(each.rows for each in unread)
        self._read(Reading(f"snapshot by ({', '.join(self._primary_key)})", total, on_progress))

    def close(self) -> None:
        """Let go of the files."""
        self._rows = None
        self._lock.close()

    def _read(self, reading: Reading | None = None) -> None:
        """Take committed slices into the file."""
        while self._unread:
            count, rows = 0, 0
            while count < len(self._unread) and rows < max(_MIN_ROWS, self.num_rows):
                rows += self._unread[count].rows
                count += 1
            self._replace(self._unread[:count], reading)
            self._unread = self._unread[count:]

    def _replace(self, unread: Sequence[Unread], reading: Reading | None) -> None:
        assert self._objects is not None, "the state was not brought up to date"
        last = unread[-1]
        path = self._folder / f"rows-{last.next_offset}.arrow"
        fold = Fold(self._rows, unread, self._objects, self._vocabulary, self._primary_key)
        rows = fold.write(path, self._folder / "fold", on_rows=None if reading is None else reading.read)
        self._describe(_Described(path.name, _digest(path), Mark(last.next_offset, last.hash)))
        before, self._rows = self._rows, rows
        self._mark = Mark(last.next_offset, last.hash)
        if before is not None:
            before.path.unlink(missing_ok=True)

    def _describe(self, described: _Described) -> None:
        part = self._folder / f".{_DESCRIPTION}"
        mark = described.mark
        part.write_text(json.dumps([described.file, described.digest, mark.next_offset, mark.last_slice]))
        sync_path(part)
        part.replace(self._folder / _DESCRIPTION)
        sync_path(self._folder)

    def _load(self) -> None:
        """Open the file that the folder describes; whatever else there is was left by a crash."""
        found = self._described()
        if found is None:
            self._clear()
            return
        try:
            if _digest(self._folder / found.file) != found.digest:
                raise ValueError("its bytes are others than those that were written")
            self._rows, self._mark = RowFile(self._folder / found.file), found.mark
        except (OSError, ValueError) as error:
            _log.warning("state is damaged: making it anew", path=str(self._folder), error=str(error))
            self._clear()
            return
        self._remove_others(_DESCRIPTION, found.file)

    def _described(self) -> _Described | None:
        try:
            file, digest, next_offset, last_slice = json.loads((self._folder / _DESCRIPTION).read_bytes())
            return _Described(str(file), str(digest), Mark(int(next_offset), last_slice))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            _log.warning("state is damaged: making it anew", path=str(self._folder), error=str(error))
            return None

    def _clear(self) -> None:
        self._rows, self._mark = None, Mark()
        self._remove_others()

    def _remove_others(self, *kept: str) -> None:
        for path in self._folder.iterdir():
            if path.name not in (_LOCK, *kept):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _locked(path: Path) -> BufferedWriter:
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise OSError(f"{path} holds a lock: another process uses this state") from error
    return file


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
