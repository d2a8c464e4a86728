"""How many messages a batch may take, so that it keeps its limits in rows and bytes.

Spark's Kafka source bounds a batch by messages alone, and a message holds one record or thousands.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from odf_common.catalog.records import SourceSettings

_SLACK = 2.0
"""How far off the limits may be before the query is started anew with another number of messages."""


@dataclass(frozen=True, slots=True)
class MessageSize:
    """The mean of a batch's messages."""

    bytes: float
    records: float

    @classmethod
    def of(cls, messages: pa.Table) -> MessageSize | None:
        """What the messages of a batch are like; None if there are none."""
        if not messages.num_rows:
            return None
        values = messages["value"]
        size = pc.sum(pc.binary_length(values)).as_py() or 0
        return cls(bytes=size / messages.num_rows, records=line_count(values) / messages.num_rows)


def line_count(values: pa.ChunkedArray) -> int:
    """The records of line-wise messages, roughly: line breaks, and one for each message."""
    breaks: int = pc.sum(pc.count_substring(values, b"\n")).as_py() or 0
    return breaks + len(values)


def max_messages(size: MessageSize | None, settings: SourceSettings) -> int:
    """How many such messages make a full batch; without a sample, as if each held one record."""
    if size is None:
        return settings.batch_rows
    by_bytes = settings.batch_bytes / max(size.bytes, 1.0)
    by_rows = settings.batch_rows / max(size.records, 1.0)
    return max(1, int(min(by_bytes, by_rows, settings.batch_rows)))


def is_far_off(current: int, size: MessageSize, settings: SourceSettings, *, is_full: bool) -> bool:
    """Whether a batch of `current` messages would miss the limits by far: too large, or full while it is too small."""
    fitting = max_messages(size, settings)
    return current > fitting * _SLACK or (is_full and fitting > current * _SLACK)


def cut(messages: pa.Table, settings: SourceSettings) -> list[pa.Table]:
    """A batch in pieces that keep the limits, in order; a single message is never cut."""
    pieces = []
    start = rows = size = 0
    breaks = pc.count_substring(messages["value"], b"\n").to_numpy(zero_copy_only=False)
    lengths = pc.binary_length(messages["value"]).to_numpy(zero_copy_only=False)
    if (breaks.sum() + len(breaks)) <= settings.batch_rows and lengths.sum() <= settings.batch_bytes:
        return [messages]
    for index, (more_rows, more_bytes) in enumerate(zip(breaks + 1, lengths, strict=True)):
        if index > start and (rows + more_rows > settings.batch_rows or size + more_bytes > settings.batch_bytes):
            pieces.append(messages.slice(start, index - start))
            start, rows, size = index, 0, 0
        rows += more_rows
        size += more_bytes
    return [*pieces, messages.slice(start)]
