"""Datasets with many known keys, and batches for them, without chain or broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.identity.multihash import ARROW0_SHA3_256, Multihash, sha3_256
from odf_common.ingest.merge import KeyIndex, LatestRows, Merged, merge
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice, OffsetInterval
from odf_common.metadata.sources import MergeStrategy
from streaming_jobs.ingest.state import KeyedStates, KnownKeys, LiveRows

_CHUNK = 100_000
_TIME_MS = 1_700_000_000_000


def ids_of(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Ids that are all over the place, as those of real records are."""
    return ((numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) % np.uint64(2**62)).astype(np.int64)


def events(numbers: npt.NDArray[np.int64], *, values: float) -> pa.Table:
    """About 80 bytes each."""
    device = pc.binary_join_element_wise("device-", pa.array(numbers % 10_000).cast(pa.string()), "")
    return pa.table(
        {
            "event_time": pa.array(_TIME_MS + numbers, pa.timestamp("ms", "UTC")),
            "id": pa.array(ids_of(numbers)),
            "device": device,
            "value": pa.array(np.full(len(numbers), values)),
            "ok": pa.array(numbers % 97 != 0),
        }
    )


def slice_of(start: int, rows: int) -> DataSlice:
    """A slice that is nowhere, but could hold so many rows."""
    digest = sha3_256(str(start).encode())
    return DataSlice(
        logical_hash=Multihash(ARROW0_SHA3_256, digest.digest),
        physical_hash=digest,
        offset_interval=OffsetInterval(start=start, end=start + rows - 1),
        size=1,
    )


@dataclass
class KeyedDataset:
    """The state of a dataset with so many known keys."""

    folder: Path
    strategy: MergeStrategy
    keys: int
    states: KeyedStates = field(init=False)
    vocabulary: DatasetVocabulary = field(default_factory=DatasetVocabulary)

    def __post_init__(self) -> None:
        self.states = KeyedStates(self.folder, [self.strategy])
        self.next_offset = 0
        for numbers in _chunks(self.keys):
            rows = events(numbers, values=1.5)
            self.take(rows, pa.array(np.zeros(len(numbers), np.int32)))

    def merge(self, rows: pa.Table) -> Merged:
        """What a batch changes."""
        state = self.states.for_strategy(self.strategy)
        known: KeyIndex | LatestRows | None = state if isinstance(state, KnownKeys | LiveRows) else None
        return merge(self.strategy, rows, known, vocabulary=self.vocabulary)

    def take(self, rows: pa.Table, op: pa.Array) -> tuple[float, float]:
        """Propose and commit rows; the seconds that either took."""
        columns = {"offset": pa.array(np.arange(self.next_offset, self.next_offset + rows.num_rows)), "op": op}
        columns["system_time"] = pa.array(np.full(rows.num_rows, _TIME_MS), pa.timestamp("ms", "UTC"))
        final = pa.table(columns | {name: rows[name] for name in rows.column_names})
        began = time.perf_counter()
        self.states.propose(final, slice_of(self.next_offset, rows.num_rows))
        proposed = time.perf_counter()
        self.next_offset += rows.num_rows
        self.states.committed(self.next_offset)
        return proposed - began, time.perf_counter() - proposed


def _chunks(count: int) -> Iterator[npt.NDArray[np.int64]]:
    for start in range(0, count, _CHUNK):
        yield np.arange(start, min(start + _CHUNK, count))
