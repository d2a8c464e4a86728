"""Writing slices: record batches in, one Parquet file and the facts about it out, in bounded memory."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from odf_common.data.logical_hash import HashingBehind, LogicalHasher, logical_hash
from odf_common.data.parquet_file import conformed, opened
from odf_common.data.reference_decoder import is_cut_sensitive, reference_schema
from odf_common.data.slices import Slice, StrPath
from odf_common.data.system_columns import as_written, first_gap
from odf_common.identity.multihash import SHA3_256, Multihash
from odf_common.metadata.fragments import DatasetVocabulary, OffsetInterval

MAX_ROW_GROUP_ROWS = 1_048_576

_MAX_ROW_GROUP_SIZE = 128 << 20  # bytes of Arrow data that wait in memory for their row group

_OLD_FORMAT = "1.0"
_NEW_FORMAT = "2.6"


class SliceWriter:
    """Streams record batches into a slice at `path`, a staging file.

    A context manager: left normally, the file is finished and `close` tells its facts; left by an exception, the file
    is removed. `schema` is what the file will hold, which is not always what was asked for: system columns take the
    types of `odf_common.data.system_columns`, and what Parquet cannot tell apart takes its plainest form (seconds
    become milliseconds, date64 a date32, other time zones UTC, fixed-size lists, dictionaries, views and large variants
    plain values).

    Parquet is written in format version 1.0, unless a column has uint32 values or timestamps in nanoseconds, which only
    2.6 keeps.
    """

    def __init__(self, path: StrPath, schema: pa.Schema, *, vocabulary: DatasetVocabulary | None = None) -> None:
        self._path = Path(path)
        self._vocabulary = vocabulary or DatasetVocabulary()
        wanted = as_written(schema, self._vocabulary)
        LogicalHasher(wanted)  # before Parquet makes a plain number of a type that cannot be hashed
        self.schema, version = _as_stored(wanted)
        self._hasher = LogicalHasher(self.schema)
        self._hashing = HashingBehind(self._hasher)
        repetitive = [self._vocabulary.operation_type_column, self._vocabulary.system_time_column]
        self._file = _parquet_writer(self._path, self.schema, version, repetitive)
        self._pending = _Pending()
        self._first: int | None = None
        self._next = 0
        self._slice: Slice | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Add records, whose offsets follow those before.

        ValueError when a column is missing, cannot take its type, or when an offset is not the one that must come.
        """
        batch = conformed(batch.select(self.schema.names), self.schema)
        self._count(batch.column(self._vocabulary.offset_column))
        while batch.num_rows:
            room = MAX_ROW_GROUP_ROWS - self._pending.rows
            self._pending.append(batch.slice(0, room))
            batch = batch.slice(room)
            if self._pending.rows == MAX_ROW_GROUP_ROWS or self._pending.size >= _MAX_ROW_GROUP_SIZE:
                self._write_row_group()

    def close(self) -> Slice:
        """Finish the file and tell its facts; ValueError, and no file, when not a single record was written."""
        if self._slice is None:
            try:
                self._slice = self._finish()
            except BaseException:
                self.discard()
                raise
        return self._slice

    def discard(self) -> None:
        """Give up: remove the file, whatever went wrong before."""
        with suppress(Exception):
            self._hashing.close()
        with suppress(Exception):
            self._file.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self.discard()

    def _count(self, offsets: pa.Array) -> None:
        if not len(offsets):
            return
        if self._first is None:
            self._first = self._next = _first_offset(offsets)
        gap = first_gap(offsets, self._next)
        if gap is not None:
            raise ValueError(f"records must be in the order of their offsets: {gap[1]} came where {gap[0]} must be")
        self._next += len(offsets)

    def _write_row_group(self) -> None:
        table = self._pending.take(self.schema)
        if not is_cut_sensitive(self.schema):
            self._hashing.update(*table.to_batches())
        self._file.write_table(table, row_group_size=MAX_ROW_GROUP_ROWS)

    def _finish(self) -> Slice:
        if self._first is None:
            raise ValueError("a slice without records has no offset interval")
        if self._pending.rows:
            self._write_row_group()
        self._hashing.close()
        self._file.close()
        return Slice(
            path=self._path,
            logical_hash=self._logical_hash(),
            physical_hash=_physical_hash(self._path),
            offset_interval=OffsetInterval(start=self._first, end=self._next - 1),
            size=self._path.stat().st_size,
        )

    def _logical_hash(self) -> Multihash:
        """Where the hash depends on how rows are cut, only the finished file tells how they will be read."""
        return logical_hash(self._path) if is_cut_sensitive(self.schema) else self._hasher.finish()


def _first_offset(offsets: pa.Array) -> int:
    first: int | None = offsets[0].as_py()
    if first is None or first < 0:
        raise ValueError(f"offsets begin at 0 or above, not at {first}")
    return first


class _Pending:
    """Batches that wait until they fill a row group."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.size = 0  # bytes

    def append(self, batch: pa.RecordBatch) -> None:
        """Let one more wait."""
        self._batches.append(batch)
        self.rows += batch.num_rows
        self.size += batch.nbytes

    def take(self, schema: pa.Schema) -> pa.Table:
        """All of them in one piece; nothing waits any more."""
        table = pa.Table.from_batches(self._batches, schema).combine_chunks()
        self._clear()
        return table


def _physical_hash(path: Path) -> Multihash:
    with path.open("rb") as file:
        return Multihash(SHA3_256, hashlib.file_digest(file, "sha3_256").digest())


def stored_schema(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    """What a slice of these columns will hold: the `schema` of its writer, known before there is any slice."""
    return _as_stored(as_written(schema, vocabulary))[0]


def _as_stored(schema: pa.Schema) -> tuple[pa.Schema, str]:
    """What columns are after they were written and read back, and the format version that changes them least."""
    old, new = (_written_and_read(schema, version) for version in (_OLD_FORMAT, _NEW_FORMAT))
    return (old, _OLD_FORMAT) if old == new else (new, _NEW_FORMAT)


def _written_and_read(schema: pa.Schema, version: str) -> pa.Schema:
    sink = pa.BufferOutputStream()
    _parquet_writer(sink, schema, version, []).close()
    with opened(pa.BufferReader(sink.getvalue())) as file:
        return reference_schema(file)


def _parquet_writer(where: Any, schema: pa.Schema, version: str, dictionary_columns: list[str]) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        where, schema, version=version, compression="snappy", use_dictionary=dictionary_columns, store_schema=False
    )
