"""Formats in which a message is read as a whole or not at all: Parquet and shapefiles."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from odf_common.ingest.messages import unreadable
from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.lines import with_content
from odf_common.ingest.read.records import InvalidPayloadError, Records
from odf_common.ingest.read.row_schema import RowSchema

MAX_UNPACKED_MESSAGE = 256 << 20
"""Bytes that one message may unpack to."""


class FileFormat(Protocol):
    """Reads files of one format."""

    def tables(self, file: BinaryIO, schema: RowSchema, *, max_size: int | None = None) -> Iterator[pa.Table]:
        """The rows in parts of bounded size, each with the columns of the parts before.

        Raises InvalidPayloadError for whatever the file holds, and where it unpacks to more than `max_size` bytes.
        """
        ...


class WholeReader:
    """Reads messages that each are a file."""

    def __init__(self, schema: RowSchema, file_format: FileFormat) -> None:
        self._schema = schema
        self._format = file_format

    def read(self, messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> Records:
        """See `Reader`."""
        whole, bad = with_content(messages, max_size=max_size)
        schema, tables, parents = self._schema, [self._schema.table.empty_table()], [np.empty(0, np.int64)]
        for row, value in zip(whole.rows.tolist(), whole.values.to_pylist(), strict=True):
            try:
                found = list(self._format.tables(io.BytesIO(value), schema, max_size=MAX_UNPACKED_MESSAGE))
            except InvalidPayloadError as error:
                bad.append(unreadable(messages, row, error.problem, index=None, data=value))
                continue
            for table in found:
                schema = schema.following(table.schema)
                tables.append(table)
                parents.append(np.full(table.num_rows, row, np.int64))
        bad.sort(key=lambda letter: (letter.partition, letter.offset))
        return Records(
            rows=pa.concat_tables(tables, promote_options="default"),
            timestamps=messages["timestamp"].take(pa.array(np.concatenate(parents))),
            unreadable=bad,
        )

    def following(self, rows: pa.Schema) -> WholeReader:
        """See `Reader`."""
        return WholeReader(self._schema.following(rows), self._format)

    def tables(self, file: BinaryIO) -> Iterator[pa.Table]:
        """The rows of a file of any size, in parts. Raises InvalidPayloadError."""
        return self._format.tables(file, self._schema)
