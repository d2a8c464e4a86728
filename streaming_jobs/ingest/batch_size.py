"""How many messages a batch may take, so that it keeps its limits in rows and bytes.

Spark's Kafka source bounds a batch by messages alone, and a message holds one record or thousands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.catalog.records import SourceSettings

_SLACK = 2.0
"""How far off the limits may be before the query is started anew with another number of messages."""


@dataclass(frozen=True, slots=True)
class MessageSize:
    """The mean of some messages."""

    bytes: float
    records: float

    @classmethod
    def of(cls, values: pa.ChunkedArray) -> MessageSize | None:
        """What messages with these values are like; None if there are none."""
        if not len(values):
            return None
        return cls(bytes=_size(values) / len(values), records=_sum(_record_counts(values)) / len(values))


def max_messages(size: MessageSize | None, settings: SourceSettings) -> int:
    """How many such messages make a full batch; without a sample, as if each held one small record."""
    if size is None:
        return settings.batch_rows
    by_bytes = settings.batch_bytes / max(size.bytes, 1.0)
    by_rows = settings.batch_rows / max(size.records, 1.0)
    return max(1, int(min(by_bytes, by_rows)))


def needs_another_size(values: pa.ChunkedArray, current: int, settings: SourceSettings) -> bool:
    """Whether a query that takes up to `current` messages at once should take fewer, or more, of this kind."""
    is_large = _size(values) > settings.batch_bytes * _SLACK
    if not is_large and len(values) < current:
        return False  # as with most batches: their records need not be counted
    wanted = max_messages(MessageSize.of(values), settings)
    # A single message may be larger than a batch should be: fewer than one cannot be asked for.
    return wanted < current if is_large else wanted > current * _SLACK


def pieces(messages: pa.Table, settings: SourceSettings) -> Iterator[pa.Table]:
    """A batch cut so that each piece keeps the limits, in order; a single message is never cut."""
    rows = np.cumsum(_record_counts(messages["value"]).to_numpy())
    size = np.cumsum(pc.fill_null(pc.binary_length(messages["value"]), 0).to_numpy())
    start = 0
    while start < messages.num_rows:
        before_rows, before_size = (rows[start - 1], size[start - 1]) if start else (0, 0)
        end = min(
            int(np.searchsorted(rows, before_rows + settings.batch_rows, "right")),
            int(np.searchsorted(size, before_size + settings.batch_bytes, "right")),
        )
        end = max(end, start + 1)
        yield messages.slice(start, end - start)
        start = end


def _record_counts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The records of each message if it holds one a line, roughly: that is all that a limit needs."""
    return pc.add(pc.fill_null(pc.count_substring(values, b"\n"), 0).cast(pa.int64()), 1)


def _size(values: pa.ChunkedArray) -> int:
    return _sum(pc.binary_length(values))


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0
