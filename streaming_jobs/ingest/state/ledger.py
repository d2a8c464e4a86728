"""All keys that rows of a dataset ever had, for the Ledger strategy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
from streaming_jobs.ingest.state.catching_up import portions, up_to_date
from streaming_jobs.ingest.state.changes import keys_of, one_array
from streaming_jobs.ingest.state.progress import OnProgress, Reading
from streaming_jobs.ingest.state.store import Mark, Store, places_in
from streaming_jobs.ingest.state.waiting import Waiting, WaitingSlices

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.storage.ports import ObjectStore


class KnownKeys:
    """A KeyIndex: what is committed lies in a store, what waits for its commit is kept beside it."""

    def __init__(self, path: Path, primary_key: Sequence[str]) -> None:
        self._primary_key = tuple(primary_key)
        self._store = Store.opened(path)
        self._waiting = WaitingSlices(path.parent)

    def contains(self, keys: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """See `odf_common.ingest.merge.KeyIndex`."""
        asked = pa.array(keys, pa.binary())
        distinct = asked.unique()
        found = np.array(self._store.find(distinct).is_valid().to_numpy(), np.bool_)
        for waiting in self._waiting.newest_first():
            found |= places_in(waiting.keys, distinct) >= 0
        return found if len(distinct) == len(asked) else found[places_in(distinct, asked)]

    def propose(self, rows: pa.Table, proposed: DataSlice) -> None:
        """Count the rows of a slice in before they are committed."""
        self._waiting.append(Waiting(proposed, keys_of(rows, self._primary_key).drop_null().unique()))

    def withdraw(self, offset: int) -> None:
        """Forget what was proposed from an offset on."""
        self._waiting.drop_from(offset)

    def committed(self, next_offset: int) -> None:
        """Keep what slices brought that end before this offset."""
        for waiting in self._waiting.take_before(next_offset):
            end = waiting.slice.offset_interval.end + 1
            self._store.write(waiting.keys, None, Mark(end, str(waiting.slice.physical_hash)))

    def catch_up(
        self,
        chain: MetadataChain,
        objects: ObjectStore,
        vocabulary: DatasetVocabulary,
        on_progress: OnProgress | None,
    ) -> None:
        """Read what the chain has and the store has not."""
        self._store, unread = up_to_date(self._store, chain, vocabulary)
        reading = Reading(f"keys ({', '.join(self._primary_key)})", sum(each.rows for each in unread), on_progress)
        for portion in portions(objects, unread, self._store.mark, vocabulary, self._primary_key):
            keys = pa.chunked_array([keys_of(rows, self._primary_key) for rows in portion.tables])
            self._store.write(one_array(keys).drop_null().unique(), None, portion.mark)
            reading.read(portion.rows)

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()
