"""What the headers of messages say, found without a step for each message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.messages.payload import (
    BATCH_COUNT_HEADER,
    BATCH_ID_HEADER,
    BATCH_INDEX_HEADER,
    CONTENT_TYPE_HEADER,
    EVENT_ID_HEADER,
    EVENT_SOURCE_HEADER,
    POLL_HEADER,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """For each header that counts, one binary value for each message; None where no message has it.

    Of a header that comes twice in a message, the last one counts.
    """

    content_type: pa.Array | None = None
    event_id: pa.Array | None = None
    event_source: pa.Array | None = None
    batch_id: pa.Array | None = None
    batch_index: pa.Array | None = None
    batch_count: pa.Array | None = None
    poll: pa.Array | None = None


def headers_of(messages: pa.Table) -> Headers:
    """The headers in a table of messages; one without a column for them has none."""
    count = messages.num_rows
    if "headers" not in messages.column_names or messages["headers"].null_count == count:
        return Headers()
    lists = messages["headers"].combine_chunks()
    lists = lists if isinstance(lists, pa.Array) else pa.concat_arrays(lists.chunks)
    rows = pc.list_parent_indices(lists).to_numpy()
    entries = pc.list_flatten(lists)
    found = _Found(count, rows, pc.struct_field(entries, "key"), pc.struct_field(entries, "value"))
    return Headers(
        content_type=found.column(CONTENT_TYPE_HEADER),
        event_id=found.column(EVENT_ID_HEADER),
        event_source=found.column(EVENT_SOURCE_HEADER),
        batch_id=found.column(BATCH_ID_HEADER),
        batch_index=found.column(BATCH_INDEX_HEADER),
        batch_count=found.column(BATCH_COUNT_HEADER),
        poll=found.column(POLL_HEADER),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    count: int
    rows: npt.NDArray[np.int64]
    keys: pa.Array
    values: pa.Array

    def column(self, name: str) -> pa.Array | None:
        places = pc.indices_nonzero(pc.equal(self.keys, name)).to_numpy()
        if not len(places):
            return None
        taken = np.full(self.count, -1, np.int64)
        taken[self.rows[places]] = places
        column = self.values.take(pa.array(taken, mask=taken < 0))
        return None if column.null_count == self.count else column
