"""NdJson: one object per line, any number of lines in a message."""

from __future__ import annotations

import pyarrow as pa

from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.json_objects import read_objects
from odf_common.ingest.read.lines import lines_of
from odf_common.ingest.read.records import Records
from odf_common.ingest.read.row_schema import RowSchema


class NdJsonReader:
    """Reads lines of JSON."""

    def __init__(self, schema: RowSchema) -> None:
        assert len(schema.wire)
        assert schema.table is not None
        self._schema = schema

    def read(self, messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> Records:
        """See `Reader`."""
        lines, unreadable = lines_of(messages, max_size=max_size)
        found = read_objects(lines.texts, self._schema)
        unreadable += lines.unreadable(found.problems)
        unreadable.sort(key=lambda letter: (letter.partition, letter.offset, letter.index or 0))
        return Records(
            rows=found.rows,
            timestamps=messages["timestamp"].take(pa.array(lines.message[found.lines])),
            unreadable=unreadable,
            letters=lines.letters(found.lines),
        )

    def following(self, rows: pa.Schema) -> NdJsonReader:
        """See `Reader`."""
        return NdJsonReader(self._schema.following(rows))
