"""Opening Parquet files whose bytes nobody vouches for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from odf_common.errors import MalformedBytesError, NotFoundError

ParquetSource: TypeAlias = str | os.PathLike[str] | BinaryIO | pa.NativeFile
"""A local path, or a seekable file that pyarrow can read."""

_BATCH_ROWS = 32_768
_BATCH_SIZE = 16 << 20  # bytes of decoded values, about

_SETTINGS: dict[str, Any] = {
    # Otherwise pyarrow keeps all row groups that it has passed.
    "pre_buffer": False,
    # Bytes for each column; otherwise a whole column chunk is read at once.
    "buffer_size": 1 << 20,
    "arrow_extensions_enabled": False,
}


@contextmanager
def opened(source: ParquetSource) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for streaming; what its bytes make pyarrow raise becomes MalformedBytesError.

    The column statistics of a file must not be touched: pyarrow ends the process over some that other writers shorten.
    """
    name = source if isinstance(source, str | os.PathLike) else "the Parquet file"
    try:
        with pq.ParquetFile(source, **_SETTINGS) as file:
            yield file
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {name}") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the file system; pyarrow's own have no number
        raise MalformedBytesError(f"{name} cannot be read as Parquet: {error}") from error


def bounded_batches(file: pq.ParquetFile, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """All rows, in batches that keep memory in bounds however wide the rows are."""
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    widest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=0)
    rows = max(1, min(_BATCH_ROWS, int(_BATCH_SIZE / max(widest, 1))))
    yield from file.iter_batches(rows, columns=columns)


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same columns in the types of `schema`; an ArrowInvalid, which is a ValueError, when a value does not fit.

    Unlike pyarrow's own cast, this one bears with required members of structs that are null.
    """
    columns = [_conformed(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _conformed(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    if array.type.equals(data_type):
        return array
    if not (types.is_struct(array.type) and types.is_struct(data_type)):
        return array.cast(data_type)
    members = [_conformed(array.field(i), data_type.field(i).type) for i in range(data_type.num_fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(members, fields=list(data_type), mask=mask)
