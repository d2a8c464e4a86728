"""Pieces of an incomplete payload: in memory while they are few, in a file when they are many."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

_IN_MEMORY = 32 << 20  # bytes


class HeldPieces:
    """See `splitter.Held`. The file goes with it; what a killed process left is removed from the staging area later."""

    def __init__(self, folder: Path, *, in_memory: int = _IN_MEMORY) -> None:
        self._path = folder / f".{uuid4().hex}.pieces"
        self._in_memory = in_memory
        self._tables: list[pa.Table] = []
        self._waiting = 0
        self._file: pa.RecordBatchFileWriter | None = None
        self.size = 0

    def add(self, messages: pa.Table) -> None:
        """Hold more."""
        copied = _copy(messages)
        size = copied.nbytes
        self.size += size
        self._waiting += size
        self._tables.append(copied)
        if self._waiting > self._in_memory:
            self._spill()

    def table(self) -> pa.Table:
        """All that is held; what is in the file is read when it is looked at."""
        if self._file is None:
            return pa.concat_tables(self._tables)
        self._spill()
        self._file.close()
        return pa.ipc.open_file(pa.memory_map(str(self._path))).read_all()

    def close(self) -> None:
        """Let go of it."""
        self._tables.clear()
        if self._file is not None:
            self._file.close()
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _spill(self) -> None:
        if self._file is None:
            self._file = pa.ipc.new_file(str(self._path), self._tables[0].schema)
        for table in self._tables:
            self._file.write_table(table)
        self._tables.clear()
        self._waiting = 0


def _copy(messages: pa.Table) -> pa.Table:
    """These messages alone: a slice would keep the batch that it was cut from."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, messages.schema) as writer:
        writer.write_table(messages)
    return pa.ipc.open_stream(sink.getvalue()).read_all()
