"""Slices: the Parquet files in which the records of a dataset lie (ODF, Data Slices)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from odf_common.data.arrow_types import from_arrow
from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import logical_hash
from odf_common.data.parquet_file import ParquetSource, bounded_batches, conformed, opened
from odf_common.data.reference_decoder import reference_schema
from odf_common.data.system_columns import as_read, first_gap
from odf_common.errors import CorruptedError, MalformedBytesError
from odf_common.identity.multihash import Multihash
from odf_common.metadata.data_schema import DataSchema
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
    narrows what is read. Raises NotFoundError, or MalformedBytesError when the file is not Parquet, lacks a column, has
    one twice, or has offsets that are no integers.
    """
    with opened(source) as file:
        schema = as_read(reference_schema(file), vocabulary or DatasetVocabulary())
        counts = Counter(schema.names)
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:
            raise MalformedBytesError(f"a slice has the column {', '.join(repeated)} more than once")
        missing = [name for name in columns or () if name not in counts]
        if missing:
            raise MalformedBytesError(f"a slice has no column {', '.join(missing)}; it has {', '.join(schema.names)}")
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        for batch in bounded_batches(file, columns=columns):
            yield conformed(batch.select(schema.names), schema)


def slice_schema(source: ParquetSource) -> DataSchema:
    """The logical columns of a slice; MalformedBytesError when it has none."""
    try:
        with opened(source) as file:
            return from_arrow(reference_schema(file))
    except UnsupportedTypeError as error:
        raise MalformedBytesError(f"a slice whose columns have no logical form: {error}") from error


def check_records(
    source: ParquetSource, promised: DataSlice, *, place: str, vocabulary: DatasetVocabulary | None = None
) -> None:
    """Raise CorruptedError, which names `place`, unless a slice whose bytes are right holds the promised records.

    Compares, the cheapest first: number of records, each offset, logical hash.
    """
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
