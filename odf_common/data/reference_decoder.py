"""Parquet files decoded the way the reference implementation does, as far as the logical hash can tell.

For data without nullable structs any decoder will do (docs/decisions/0005-logical-hash-cost.md).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from odf_common.data.digest_types import is_bytes, is_list, is_text, is_view
from odf_common.data.digest_values import Mask, bitmap, own_mask
from odf_common.data.parquet_file import bounded_batches, conformed, expanded_size
from odf_common.errors import MalformedBytesError

REFERENCE_BATCH_ROWS = 10_000
"""Rows of a batch in the reference implementation, counted from the start of the file."""

_MAX_EXPANDED_SIZE = 1 << 30
"""Bytes that so many rows may have, as their batch must not be cut any smaller."""

_VIEW = pa.binary(16)
"""A view of a text or byte string, as far as moving it is concerned; 16 zeros are the view of nothing."""

_ARROW_SCHEMA = b"ARROW:schema"


def is_cut_sensitive(schema: pa.Schema) -> bool:
    """Whether the logical hash depends on how rows are cut into batches: a nullable struct has a nullable member."""
    return any(_is_cut_sensitive(column) for column in schema)


def reference_schema(file: pq.ParquetFile) -> pa.Schema:
    """The columns as the reference reads them: an embedded Arrow schema tells what Parquet has no words for."""
    schema = pa.schema(column.with_type(_without_dictionary(column.type)) for column in file.schema_arrow)
    hints = _embedded_schema(file)
    if hints is None or hints.names != schema.names:
        return schema
    return pa.schema([_hinted(column, hint) for column, hint in zip(schema, hints, strict=True)])


def reference_batches(file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """All rows, in the batches of the reference where that matters, with what it leaves under nulls."""
    if not is_cut_sensitive(schema):
        for batch in bounded_batches(file):
            yield conformed(batch, schema)
        return
    group_ends = list(accumulate(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)))
    start = 0
    for batch in _batches_of(REFERENCE_BATCH_ROWS, file, schema):
        end = start + batch.num_rows
        cuts = [0, *(cut - start for cut in group_ends if start < cut < end), batch.num_rows]
        yield with_leftovers(batch, cuts)
        start = end


def _batches_of(rows: int, file: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """All rows in batches of exactly so many, and a rest: beside texts in dictionaries, pyarrow cuts where it likes."""
    pending: list[pa.RecordBatch] = []
    size = count = 0
    for read in file.iter_batches(rows):
        batch = read
        while batch.num_rows:
            part = batch.slice(0, rows - count)
            batch = batch.slice(part.num_rows)
            size += expanded_size(part)
            if size > _MAX_EXPANDED_SIZE:
                raise MalformedBytesError(f"{rows} rows have {size} bytes and more; {_MAX_EXPANDED_SIZE} can be hashed")
            pending.append(conformed(part, schema))
            count += part.num_rows
            if count == rows:
                yield pa.concat_batches(pending)
                pending, size, count = [], 0, 0
    if pending:
        yield pa.concat_batches(pending)


def with_leftovers(batch: pa.RecordBatch, cuts: list[int]) -> pa.RecordBatch:
    """The same rows, with what the reference leaves under nulls of fixed-width members of structs, views among them.

    `cuts` are the first row of the batch, those where a row group begins, and the number of rows. The reference decodes
    the values of such a part without gaps into a buffer of zeros, then moves each to its row; what it moves from stays.
    """
    columns = [
        _with_leftovers(column, None, cuts) if types.is_struct(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _embedded_schema(file: pq.ParquetFile) -> pa.Schema | None:
    embedded = (file.metadata.metadata or {}).get(_ARROW_SCHEMA)
    if embedded is None:
        return None
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(embedded)))
    except ValueError as error:
        raise MalformedBytesError(f"the Arrow schema embedded in a Parquet file cannot be read: {error}") from error


def _is_cut_sensitive(column: pa.Field) -> bool:
    if not types.is_struct(column.type):
        return False
    return any((column.nullable and _has_nullable(member)) or _is_cut_sensitive(member) for member in column.type)


def _has_nullable(column: pa.Field) -> bool:
    members = column.type if types.is_struct(column.type) else ()
    return bool(column.nullable) or any(_has_nullable(member) for member in members)


def _with_leftovers(array: pa.Array, enclosing: Mask, cuts: list[int]) -> pa.Array:
    mask = own_mask(array)
    present = mask if enclosing is None else enclosing if mask is None else enclosing & mask
    if types.is_struct(array.type):
        members = [_with_leftovers(array.field(i), present, cuts) for i in range(array.type.num_fields)]
        nulls = None if mask is None else pa.array(~mask)
        return pa.StructArray.from_arrays(members, fields=list(array.type), mask=nulls)
    if present is None or not _keeps_leftovers(array.type):
        return array
    values = array
    if is_view(array.type):
        values = pa.Array.from_buffers(_VIEW, len(array), [None, array.buffers()[1]], offset=array.offset)
    parts = [_leftovers(values[start:end], present[start:end]) for start, end in pairwise(cuts)]
    moved = pa.concat_arrays(parts).buffers()[1]
    return pa.Array.from_buffers(array.type, len(array), [bitmap(mask), moved, *array.buffers()[2:]])


def _leftovers(values: pa.Array, present: npt.NDArray[np.bool_]) -> pa.Array:
    """Present values where they are; under the i-th row, if null, the i-th present value, or zero behind the last."""
    dense = values.filter(pa.array(present))
    zero = pa.Array.from_buffers(values.type, 1, [None, pa.py_buffer(bytes(max(1, values.type.bit_width // 8)))])
    sources = np.where(present, np.cumsum(present) - 1, np.minimum(np.arange(len(values)), len(dense)))
    return pa.concat_arrays([dense, zero]).take(pa.array(sources))


def _keeps_leftovers(data_type: pa.DataType) -> bool:
    has_fixed_width = types.is_primitive(data_type) or types.is_decimal(data_type)
    return bool(has_fixed_width or types.is_fixed_size_binary(data_type) or is_view(data_type))


def _without_dictionary(data_type: pa.DataType) -> pa.DataType:
    if types.is_struct(data_type):
        return pa.struct([member.with_type(_without_dictionary(member.type)) for member in data_type])
    return data_type.value_type if types.is_dictionary(data_type) else data_type


def _hinted(column: pa.Field, hint: pa.Field) -> pa.Field:
    return column.with_type(_hinted_type(column.type, hint.type))


def _hinted_type(read: pa.DataType, hint: pa.DataType) -> pa.DataType:
    if types.is_struct(read) and types.is_struct(hint) and read.num_fields == hint.num_fields:
        return pa.struct([_hinted(member, member_hint) for member, member_hint in zip(read, hint, strict=True)])
    if types.is_list(read) and is_list(hint):
        return pa.list_(_hinted(read.value_field, hint.value_field))
    return hint if any(reads(read) and hints(hint) for reads, hints in _HINTS) else read


def _is_plain_int(data_type: pa.DataType) -> bool:
    return bool(types.is_int32(data_type) or types.is_int64(data_type))


_HINTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool]], ...] = (
    (_is_plain_int, types.is_timestamp),
    (_is_plain_int, types.is_time),
    (_is_plain_int, types.is_date64),
    (types.is_date32, types.is_date64),
    (is_bytes, is_text),
    (types.is_decimal128, types.is_decimal),
)
