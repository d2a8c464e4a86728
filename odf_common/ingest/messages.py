"""Raw messages of a topic as they enter ingestion, and those that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.timestamp import Timestamp

KAFKA_TIME = pa.timestamp("us", "UTC")

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

MESSAGES = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", KAFKA_TIME, nullable=False),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
    ]
)
"""A table of this schema is a batch of messages, in the order of partition and offset.

A null value is a tombstone; null headers are none (see `odf_common.messages.payload`).
"""

_LAST_TIME = 253_402_300_799_999_999
"""Microseconds; producers may set any time, and the year 9999 is the last that has a name."""


class Code:
    """What is wrong with an unreadable record, for programs."""

    TOMBSTONE = "Tombstone"
    EMPTY = "EmptyMessage"
    TOO_LARGE = "MessageTooLarge"
    INVALID_UTF8 = "InvalidUtf8"
    INVALID_JSON = "InvalidJson"
    INVALID_CSV = "InvalidCsv"
    TOO_DEEP = "TooDeep"
    WRONG_TYPE = "WrongType"
    PREPROCESS_FAILED = "PreprocessFailed"
    DUPLICATE_KEY = "DuplicateKey"
    TOO_MANY_COLUMNS = "TooManyColumns"
    NULL_KEY = "NullKey"
    DUPLICATE_KEYS = "DuplicateKeysInSnapshot"
    BAD_OPERATION = "BadOperation"
    INCOMPATIBLE_SCHEMA = "IncompatibleSchema"
    WRONG_MEDIA_TYPE = "WrongMediaType"
    INCOMPLETE_BATCH = "IncompleteBatch"
    UPLOAD_MISSING = "UploadMissing"
    UPLOAD_DAMAGED = "UploadDamaged"
    INVALID_PAYLOAD = "InvalidPayload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A record that becomes a dead letter. `data` are its own bytes: the message's if it is all of that."""

    partition: int
    offset: int
    index: int | None
    """The place among the records of its message, from 0; None when it is the whole message."""
    timestamp: Timestamp
    code: str
    reason: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a record cannot be read."""

    code: str
    reason: str


def unreadable(messages: pa.Table, message: int, problem: Problem, *, index: int | None, data: bytes) -> Unreadable:
    """The dead letter of a record of the message in that row."""
    return all_unreadable(messages, [message], [problem], [index], [data])[0]


def all_unreadable(
    messages: pa.Table,
    rows: Sequence[int] | npt.NDArray[np.int64],
    problems: Iterable[Problem],
    indices: Iterable[int | None],
    data: Iterable[bytes],
) -> list[Unreadable]:
    """The dead letters of many records at once: the row of its message, the problem, index and bytes of each."""
    places = pa.array(rows, pa.int64())
    partitions, offsets = (messages[name].take(places).to_pylist() for name in ("partition", "offset"))
    times = messages["timestamp"].cast(pa.int64()).take(places).to_pylist()
    found = zip(partitions, offsets, times, problems, indices, data, strict=True)
    return [
        Unreadable(
            partition=partition,
            offset=offset,
            index=index,
            timestamp=Timestamp(min(max(microseconds, 0), _LAST_TIME) * 1000),
            code=problem.code,
            reason=problem.reason,
            data=text,
        )
        for partition, offset, microseconds, problem, index, text in found
    ]
