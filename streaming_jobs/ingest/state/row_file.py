"""Rows in a local file that can be read in order, or here and there, without taking memory for all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.ingest.merge import aligned

_BATCH_ROWS = 1 << 16
_BATCH_SIZE = 16 << 20  # bytes

Places = npt.NDArray[np.int64]


class RowFile:
    """An Arrow file, mapped into memory; its bytes are those of this process's own writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.schema: pa.Schema = self._file.schema
        batches = [self._file.get_batch(number) for number in range(self._file.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
        self.num_rows = int(self._starts[-1])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows in their order."""
        for number in range(self._file.num_record_batches):
            yield self._file.get_batch(number)

    def take(self, places: Places) -> pa.Table:
        """The rows at these places, in the order of the places."""
        order = np.argsort(places, kind="stable")
        ordered = places[order]
        cuts = np.searchsorted(ordered, self._starts)
        tables = [self.schema.empty_table()]
        for number, (start, end) in enumerate(pairwise(cuts.tolist())):
            if start < end:
                inside = pa.array(ordered[start:end] - self._starts[number])
                tables.append(pa.Table.from_batches([self._file.get_batch(number).take(inside)]))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_tables(tables).combine_chunks().take(pa.array(back))


class RowFiles:
    """The rows of several files, one behind the other, with the columns of all; null where a file has none."""

    def __init__(self, files: Sequence[RowFile], schema: pa.Schema) -> None:
        self._files = files
        self.schema = schema
        self._starts = np.cumsum([0, *(file.num_rows for file in files)])
        self.num_rows = int(self._starts[-1])

    def batches(self) -> Iterator[pa.Table]:
        """All rows in their order."""
        for file in self._files:
            for batch in file.batches():
                yield aligned(pa.Table.from_batches([batch]), self.schema)

    def take(self, places: Places) -> pa.Table:
        """The rows at these places, in the order of the places."""
        if len(self._files) == 1:
            return aligned(self._files[0].take(places), self.schema)
        of_file = np.searchsorted(self._starts, places, side="right") - 1
        mine = [np.flatnonzero(of_file == number) for number in range(len(self._files))]
        tables = [
            aligned(file.take(places[some] - start), self.schema)
            for file, some, start in zip(self._files, mine, self._starts[:-1], strict=True)
        ]
        back = np.argsort(np.concatenate([*mine, np.empty(0, np.int64)]), kind="stable")
        return pa.concat_tables([self.schema.empty_table(), *tables]).take(pa.array(back))


class RowFileWriter:
    """Writes the file; without `finish` it is gone at the end."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self.schema = schema
        self._sink = pa.OSFile(str(path), "wb")
        self._file = pa.ipc.new_file(self._sink, schema)
        self._is_finished = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._is_finished:
            self._file.close()
            self._sink.close()
            self._path.unlink(missing_ok=True)

    def write(self, rows: pa.Table) -> None:
        """Append rows of the file's schema."""
        size = max(1, rows.nbytes // max(rows.num_rows, 1))
        self._file.write_table(rows, max_chunksize=max(1, min(_BATCH_ROWS, _BATCH_SIZE // size)))

    def finish(self, *, is_durable: bool = False) -> RowFile:
        """The file; if asked for, it survives a power failure."""
        self._file.close()
        self._sink.close()
        self._is_finished = True
        if is_durable:
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
        return RowFile(self._path)
