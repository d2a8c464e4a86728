"""The live latest row of each key of a dataset, for the UpsertStream strategy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.merge.latest import last_places
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
from streaming_jobs.ingest.state.catching_up import portions, up_to_date
from streaming_jobs.ingest.state.changes import changes_of, one_array
from streaming_jobs.ingest.state.progress import OnProgress, Reading
from streaming_jobs.ingest.state.row_values import RowValues
from streaming_jobs.ingest.state.store import Mark, Store, places_in
from streaming_jobs.ingest.state.waiting import Waiting, WaitingSlices

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.storage.ports import ObjectStore

_AT_ONCE = 1 << 16  # rows


class LiveRows:
    """A LatestRows: what is committed lies in a store, what waits for its commit is kept beside it."""

    def __init__(self, path: Path, primary_key: Sequence[str]) -> None:
        self._primary_key = tuple(primary_key)
        self._store = Store.opened(path)
        self._values = RowValues(self._store)
        self._waiting = WaitingSlices(path.parent)
        self._vocabulary = DatasetVocabulary()

    def latest(self, keys: pa.Array, schema: pa.Schema) -> tuple[npt.NDArray[np.bool_], pa.Table]:
        """See `odf_common.ingest.merge.LatestRows`."""
        found = np.zeros(len(keys), np.bool_)
        tables = [schema.empty_table()]
        values = self._found(keys)
        for start in range(0, len(values), _AT_ONCE):
            part = values.slice(start, _AT_ONCE)
            found[start : start + _AT_ONCE] = part.is_valid().to_numpy(zero_copy_only=False)
            tables.append(self._values.decode(one_array(part.drop_null()), schema))
        return found, pa.concat_tables(tables)

    def propose(self, rows: pa.Table, proposed: DataSlice) -> None:
        """Count the rows of a slice in before they are committed."""
        keys, values = self._changed([rows], self._vocabulary)
        self._waiting.append(Waiting(proposed, keys, values))

    def withdraw(self, offset: int) -> None:
        """Forget what was proposed from an offset on."""
        self._waiting.drop_from(offset)

    def committed(self, next_offset: int) -> None:
        """Keep what slices brought that end before this offset."""
        for waiting in self._waiting.take_before(next_offset):
            end = waiting.slice.offset_interval.end + 1
            self._store.write(waiting.keys, waiting.values, Mark(end, str(waiting.slice.physical_hash)))

    def catch_up(
        self,
        chain: MetadataChain,
        objects: ObjectStore,
        vocabulary: DatasetVocabulary,
        on_progress: OnProgress | None,
    ) -> None:
        """Read what the chain has and the store has not."""
        self._vocabulary = vocabulary
        store, unread = up_to_date(self._store, chain, vocabulary)
        if store is not self._store:
            self._store, self._values = store, RowValues(store)
        what = f"latest rows by ({', '.join(self._primary_key)})"
        reading = Reading(what, sum(each.rows for each in unread), on_progress)
        for portion in portions(objects, unread, self._store.mark, vocabulary):
            self._store.write(*self._changed(portion.tables, vocabulary), portion.mark)
            reading.read(portion.rows)

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()

    def _found(self, keys: pa.Array) -> pa.ChunkedArray:
        """The value of each key, null where it has no live row: the newest slice that knows the key tells."""
        parts: list[pa.Array] = []
        places: list[npt.NDArray[np.int64]] = []
        left = np.arange(len(keys))
        for waiting in self._waiting.newest_first():
            asked = keys.take(pa.array(left))
            known = places_in(waiting.keys, asked)
            hits = known >= 0
            if hits.any():
                assert waiting.values is not None
                parts.append(waiting.values.take(pa.array(known[hits])))
                places.append(left[hits])
                left = left[~hits]
        stored = self._store.find(keys if len(left) == len(keys) else keys.take(pa.array(left)))
        values = pa.chunked_array([*parts, *stored.chunks], pa.binary())
        if not places:
            return values
        order = np.argsort(np.concatenate([*places, left]), kind="stable")
        return values.take(pa.array(order))

    def _changed(self, tables: Sequence[pa.Table], vocabulary: DatasetVocabulary) -> tuple[pa.Array, pa.Array]:
        """The keys of rows, no two alike, and the value of each; null where its last row takes it away."""
        keys: list[pa.Array] = []
        values: list[pa.Array] = []
        for table in tables:
            for start in range(0, table.num_rows, _AT_ONCE * 4):
                changes = changes_of(table.slice(start, _AT_ONCE * 4), self._primary_key, vocabulary)
                keys.append(changes.keys)
                encoded = self._values.encode(changes.rows)
                values.append(pc.if_else(changes.live, encoded, pa.scalar(None, pa.binary())))
        all_keys = one_array(pa.chunked_array(keys, pa.binary()))
        all_values = one_array(pa.chunked_array(values, pa.binary()))
        if len(keys) == 1:
            return all_keys, all_values
        last = pa.array(last_places(all_keys))
        return all_keys.take(last), all_values.take(last)
