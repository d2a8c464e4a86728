"""What slices say of their keys that are proposed, but not committed yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from odf_common.metadata.fragments import DataSlice

_LARGE = 16 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """The keys of a slice, no two alike, and their values, null where a key is taken away; without values just keys."""

    slice: DataSlice
    keys: pa.Array
    values: pa.Array | None = None

    def on_disk(self, folder: Path) -> Waiting:
        """The same in a file of which only what is looked at takes memory; it goes with the last user, or a crash."""
        columns = [self.keys] if self.values is None else [self.keys, self.values]
        batch = pa.RecordBatch.from_arrays(columns, names=["key", "value"][: len(columns)])
        path = folder / f".{uuid4().hex}.waiting"
        try:
            with pa.ipc.new_file(path, batch.schema) as file:
                file.write_batch(batch)
            mapped = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        finally:
            path.unlink(missing_ok=True)
        return Waiting(self.slice, *mapped.columns)

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.keys.nbytes + (self.values.nbytes if self.values is not None else 0))


class WaitingSlices:
    """In the order of their offsets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slices: deque[Waiting] = deque()

    def append(self, waiting: Waiting) -> None:
        """The next one; large ones do not stay in memory."""
        self._slices.append(waiting.on_disk(self._folder) if waiting.size > _LARGE else waiting)

    def drop_from(self, offset: int) -> None:
        """Remove those that start at an offset or behind it."""
        while self._slices and self._slices[-1].slice.offset_interval.start >= offset:
            self._slices.pop()

    def newest_first(self) -> Iterator[Waiting]:
        """All of them."""
        return reversed(self._slices)

    def take_before(self, next_offset: int) -> Iterator[Waiting]:
        """Remove and return those that end before an offset, oldest first."""
        while self._slices and self._slices[0].slice.offset_interval.end < next_offset:
            yield self._slices.popleft()
