"""Parquet: the columns of a file as they are, or those that are declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from odf_common.data.parquet_file import bounded_batches, expanded_size, opened
from odf_common.errors import MalformedBytesError
from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read.column_casts import MisfitError, cast_column, plain_type, storage_problem
from odf_common.ingest.read.inference import MAX_COLUMNS
from odf_common.ingest.read.records import InvalidPayloadError
from odf_common.ingest.read.row_schema import RowSchema

_FAILURES = (pa.ArrowException, ValueError, OverflowError, TypeError)


class ParquetFormat:
    """Reads Parquet files."""

    def tables(self, file: BinaryIO, schema: RowSchema, *, max_size: int | None = None) -> Iterator[pa.Table]:
        """See `FileFormat`."""
        try:
            yield from _tables(file, schema, max_size)
        except InvalidPayloadError:
            raise
        except MalformedBytesError as error:
            raise _invalid(str(error).split("\n", 1)[0]) from error
        except _FAILURES as error:
            raise _invalid(f"the Parquet file cannot be read: {_first_line(error)}") from error


def _tables(file: BinaryIO, schema: RowSchema, max_size: int | None) -> Iterator[pa.Table]:
    with opened(file) as parquet:
        found = parquet.schema_arrow
        target = _target(found, schema)
        yield target.table.empty_table()
        names = [name for name in target.input.names if name in found.names]
        if not names and parquet.metadata.num_rows:
            raise _invalid(f"the Parquet file has none of the columns {', '.join(target.input.names)}")
        size = first = 0
        for batch in bounded_batches(parquet, columns=names):
            size += expanded_size(batch)
            if max_size is not None and size > max_size:
                raise _invalid(f"the Parquet file unpacks to more than {max_size} bytes: send it in smaller files")
            yield _rows(batch, target, first)
            first += batch.num_rows
        promised = parquet.metadata.num_rows
        if first != promised:  # of a damaged page, pyarrow may just read nothing
            raise _invalid(f"the Parquet file is damaged: it says that it has {promised} rows, but has {first}")


def _target(found: pa.Schema, schema: RowSchema) -> RowSchema:
    """The columns that the rows get; for undeclared ones with those that the file brings."""
    repeated = [name for name in found.names if found.names.count(name) > 1] if len(found) <= MAX_COLUMNS else []
    if repeated:
        raise _invalid(f"the Parquet file has the column {repeated[0]!r} twice")
    if len(found) > MAX_COLUMNS:
        reason = f"a row may have {MAX_COLUMNS} columns, the Parquet file has {len(found)}"
        raise InvalidPayloadError(Problem(Code.TOO_MANY_COLUMNS, reason))
    if schema.is_declared:
        return schema
    clash = {f"_{name}" for name in schema.reserved if name in found.names} & set(found.names)
    if clash:
        raise _invalid(f"two columns want to be called {min(clash)!r}")
    new = []
    for column in found:
        data_type = plain_type(column.type)
        if column.name in schema.input.names or pa.types.is_null(data_type):
            continue
        problem = storage_problem(column.name, data_type)
        if problem is not None and column.name != schema.event_time:
            raise InvalidPayloadError(problem)
        new.append(pa.field(column.name, data_type, column.nullable))
    widened = schema.widened(pa.schema([*schema.input, *new]))
    index = widened.input.get_field_index(schema.event_time or "")
    if index >= 0 and schema.event_time not in schema.input.names:
        # Days stay days; texts and numbers become times.
        data_type = plain_type(found.field(schema.event_time).type)
        if pa.types.is_date(data_type):
            fields = widened.input.set(index, pa.field(schema.event_time, data_type))
            return RowSchema(fields, schema.is_declared, schema.event_time, schema.reserved)
    return widened


def _rows(batch: pa.RecordBatch, schema: RowSchema, first: int) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for column in schema.input:
        name = schema.row_name(column.name)
        if column.name not in batch.schema.names:
            columns.setdefault(name, pa.nulls(batch.num_rows, schema.table.field(name).type))
            if not column.nullable and batch.num_rows:
                raise _misfit(f"column {column.name!r}: a value is required, the Parquet file has no such column")
            continue
        is_time = column.name == schema.event_time and not schema.is_declared
        try:
            columns[name] = cast_column(batch.column(column.name), column, is_time=is_time)
        except MisfitError as error:
            place = "" if error.place is None else f"record {first + error.place + 1}: "
            raise _misfit(f"{place}column {column.name!r}: {error}") from error
    try:
        schema.check_event_times(columns)
    except ValueError as error:
        raise _misfit(str(error)) from error
    rows = pa.Table.from_arrays([columns[name] for name in schema.table.names], schema=schema.table)
    rows.validate(full=True)
    return rows


def _invalid(reason: str) -> InvalidPayloadError:
    return InvalidPayloadError(Problem(Code.INVALID_PAYLOAD, reason))


def _misfit(reason: str) -> InvalidPayloadError:
    return InvalidPayloadError(Problem(Code.WRONG_TYPE, reason))


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
