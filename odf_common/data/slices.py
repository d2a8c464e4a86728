"""Slices: the Parquet files in which the records of a dataset lie (ODF, Data Slices)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import logical_hash
from odf_common.data.parquet_file import ParquetSource, bounded_batches, conformed, opened
from odf_common.data.reference_decoder import reference_schema
from odf_common.data.system_columns import as_read, first_gap
from odf_common.errors import CorruptedError, MalformedBytesError
from odf_common.identity.multihash import SHA3_256, Multihash
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice, OffsetInterval

StrPath: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A finished slice in a local file."""

    path: Path
    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: int  # bytes

    @property
    def num_records(self) -> int:
        """How many records the slice holds, at least one."""
        return self.offset_interval.end - self.offset_interval.start + 1

    def to_data_slice(self) -> DataSlice:
        """What a block promises of it."""
        return DataSlice(
            logical_hash=self.logical_hash,
            physical_hash=self.physical_hash,
            offset_interval=self.offset_interval,
            size=self.size,
        )


def read_slice(
    source: ParquetSource,
    *,
    columns: Sequence[str] | None = None,
    vocabulary: DatasetVocabulary | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of a slice in their order, in batches of bounded size.

    Offsets and operations come as int64 and int32, also from slices that carry them as uint64 and uint8. `columns`
    narrows what is read. Raises NotFoundError, or MalformedBytesError when the file is not Parquet or lacks a column.
    """
    with opened(source) as file:
        schema = as_read(reference_schema(file), vocabulary or DatasetVocabulary())
        missing = [name for name in columns or () if name not in schema.names]
        if missing:
            raise MalformedBytesError(f"a slice has no column {', '.join(missing)}; it has {', '.join(schema.names)}")
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        for batch in bounded_batches(file, columns=columns):
            yield conformed(batch.select(schema.names), schema)


def physical_hash(path: StrPath) -> Multihash:
    """The hash of a file's bytes, by which it is addressed."""
    with Path(path).open("rb") as file:
        return Multihash(SHA3_256, hashlib.file_digest(file, "sha3_256").digest())


def check_slice(path: StrPath, promised: DataSlice, *, vocabulary: DatasetVocabulary | None = None) -> None:
    """Raise CorruptedError, which says what differs, unless the file is the slice that a block promises.

    Compares, the cheapest first: size, physical hash, number of records, each offset, logical hash.
    """
    place = os.fspath(path)
    _check(place, "size in bytes", promised.size, Path(path).stat().st_size)
    _check(place, "physical hash", promised.physical_hash, physical_hash(path))
    check_records(path, promised, place=place, vocabulary=vocabulary)


def check_records(
    source: ParquetSource, promised: DataSlice, *, place: str, vocabulary: DatasetVocabulary | None = None
) -> None:
    """Raise CorruptedError, which names `place`, unless a slice whose bytes are right holds the promised records."""
    try:
        _check_offsets(source, promised.offset_interval, place, vocabulary or DatasetVocabulary())
        _check(place, "logical hash", promised.logical_hash, logical_hash(source))
    except (MalformedBytesError, UnsupportedTypeError) as error:
        raise CorruptedError(place, str(error)) from error


def _check(place: str, what: str, promised: object, found: object) -> None:
    if promised != found:
        raise CorruptedError(place, f"its {what} is {found}, {promised} was promised")


def _check_offsets(source: ParquetSource, promised: OffsetInterval, place: str, vocabulary: DatasetVocabulary) -> None:
    with opened(source) as file:
        _check(place, "number of records", promised.end - promised.start + 1, file.metadata.num_rows)
    start = promised.start
    name = vocabulary.offset_column
    for batch in read_slice(source, columns=[name], vocabulary=vocabulary):
        gap = first_gap(batch.column(0), start)
        if gap is not None:
            raise CorruptedError(place, f"offset {gap[0]} was promised where its column {name!r} has {gap[1]}")
        start += batch.num_rows
