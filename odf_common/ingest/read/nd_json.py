"""NdJson: one object per line, any number of lines in a message."""

from __future__ import annotations

import pyarrow as pa

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

    def read(self, messages: pa.Table) -> Records:
        """See `Reader`."""
        lines, unreadable = lines_of(messages)
        found = read_objects(lines.texts, self._schema)
        unreadable += lines.unreadable(found.problems)
        unreadable.sort(key=lambda letter: (letter.partition, letter.offset, letter.index or 0))
        return Records(
            rows=found.rows,
            timestamps=messages["timestamp"].take(pa.array(lines.message[found.lines])),
            unreadable=unreadable,
        )
