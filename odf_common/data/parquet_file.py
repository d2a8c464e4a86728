"""Opening Parquet files whose bytes nobody vouches for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from odf_common.errors import MalformedBytesError, NotFoundError

ParquetSource: TypeAlias = str | os.PathLike[str] | BinaryIO | pa.NativeFile
"""A local path, or a seekable file that pyarrow can read."""

BATCH_ROWS = 32_768
"""Rows of a batch at most: the fastest of the powers of two, as the copies of a batch stay in the cache."""

_BATCH_SIZE = 16 << 20  # bytes of decoded values, about

_READ_BUFFER_SIZE = 1 << 20  # bytes for each column; without it a whole column chunk is held in memory


@contextmanager
def opened(source: ParquetSource) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for streaming; what its bytes make pyarrow raise becomes MalformedBytesError.

    The column statistics of a file must not be touched: pyarrow ends the process over some that other writers shorten.
    """
    name = source if isinstance(source, str | os.PathLike) else "the Parquet file"
    try:
        with pq.ParquetFile(source, buffer_size=_READ_BUFFER_SIZE, arrow_extensions_enabled=False) as file:
            yield file
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {name}") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise MalformedBytesError(f"{name} cannot be read as Parquet: {error}") from error


def bounded_batches(file: pq.ParquetFile, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """All rows, in batches that keep memory in bounds however wide the rows are."""
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    widest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=0)
    rows = max(1, min(BATCH_ROWS, int(_BATCH_SIZE / max(widest, 1))))
    yield from file.iter_batches(rows, columns=columns)
