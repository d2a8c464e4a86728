"""Opening Parquet files whose bytes nobody vouches for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
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

    Texts that the file shares in a dictionary stay shared: a few bytes could stand for gigabytes of them.
    The column statistics of a file must not be touched: pyarrow ends the process over some that other writers shorten.
    """
    name = source if isinstance(source, str | os.PathLike) else "the Parquet file"
    try:
        with pq.ParquetFile(source, **_SETTINGS) as file:
            metadata, shared = file.metadata, _shared_texts(file)
        with pq.ParquetFile(source, metadata=metadata, read_dictionary=shared, **_SETTINGS) as file:
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
    for batch in file.iter_batches(rows, columns=columns):
        yield from _pieces(batch)


def expanded_size(batch: pa.RecordBatch) -> int:
    """About how many bytes a batch has when its dictionaries are expanded."""
    return int(batch.nbytes + _shared_sizes(batch).sum())


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The same rows, cut so that little memory is needed to expand each piece; no piece has less than a row."""
    ends = np.cumsum(_shared_sizes(batch))
    start = 0
    while start < batch.num_rows:
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + _BATCH_SIZE, side="right")))
        yield batch.slice(start, end - start)
        start = end


def _shared_sizes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The bytes of each row that lie in dictionaries, from which other rows may take them too."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        sizes += _shared_sizes_of(column)
    return sizes


def _shared_sizes_of(array: pa.Array) -> npt.NDArray[np.int64] | int:
    if types.is_struct(array.type):
        return sum(_shared_sizes_of(array.field(i)) for i in range(array.type.num_fields))
    if not types.is_dictionary(array.type):
        return 0
    sizes = pc.binary_length(array.dictionary).take(array.indices)
    filled: npt.NDArray[np.int64] = sizes.fill_null(0).cast(pa.int64()).to_numpy()
    return filled


def _shared_texts(file: pq.ParquetFile) -> list[int]:
    """Columns of texts in dictionaries; in structs and lists, or beside delta encodings, pyarrow cannot keep them."""
    texts = [index for index in range(file.metadata.num_columns) if _is_flat_text(file.schema.column(index))]
    if not texts:
        return []
    names = [file.schema.column(index).path for index in texts]
    for group in range(file.num_row_groups):  # a broken column chunk raises here; its description ends the process
        next(file.iter_batches(1, row_groups=[group], columns=names), None)
    return [index for index in texts if _is_shared(file.metadata, index)]


def _is_flat_text(leaf: pq.ColumnSchema) -> bool:
    return bool(leaf.physical_type == "BYTE_ARRAY" and leaf.path == leaf.name and not leaf.max_repetition_level)


def _is_shared(metadata: pq.FileMetaData, column: int) -> bool:
    groups = range(metadata.num_row_groups)
    encodings = {encoding for group in groups for encoding in metadata.row_group(group).column(column).encodings}
    return any("DICTIONARY" in encoding for encoding in encodings) and not any("DELTA" in name for name in encodings)


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
