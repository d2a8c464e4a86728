"""Pieces of payloads: stretches of messages in which each piece follows on the one before."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming_jobs.ingest.headers import Headers

_MAX_ID_SIZE = 200  # bytes
_MAX_COUNT = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceRun:
    """Messages `[start, end)` of a table, which are the pieces from `index` on of one payload."""

    start: int
    end: int
    batch_id: bytes
    index: int
    count: int
    content_type: bytes | None
    problem: str | None = None
    """What is wrong with the headers; then it is one message."""

    @property
    def media_type(self) -> str | None:
        """Of all its pieces."""
        return None if self.content_type is None else self.content_type.decode(errors="replace")

    def is_continued_by(self, other: PieceRun, there: int) -> bool:
        """Whether another run brings the next pieces after the ones that are there."""
        mine = (self.batch_id, self.count, self.content_type)
        return mine == (other.batch_id, other.count, other.content_type) and other.index == there


def piece_runs(messages: pa.Table, headers: Headers, start: int, end: int) -> Iterator[PieceRun]:
    """The runs among messages `[start, end)`, which are of one partition and one content type, and pieces all."""
    assert headers.batch_id is not None
    size = end - start
    ids = headers.batch_id.slice(start, size)
    index, count = (_numbers(column, start, size) for column in (headers.batch_index, headers.batch_count))
    is_fine = (index >= 0) & (count > 0) & (index < count) & (_lengths(ids) <= _MAX_ID_SIZE)
    codes = ids.dictionary_encode().indices.to_numpy()
    goes_on = np.zeros(size + 1, np.bool_)
    goes_on[1:size] = (
        is_fine[1:]
        & is_fine[:-1]
        & (codes[1:] == codes[:-1])
        & (count[1:] == count[:-1])
        & (index[1:] == index[:-1] + 1)
    )
    bounds = np.flatnonzero(~goes_on).tolist()
    for begin, stop in itertools.pairwise(bounds):
        content_type = None if headers.content_type is None else headers.content_type[start + begin].as_py()
        yield PieceRun(
            start=start + begin,
            end=start + stop,
            batch_id=ids[begin].as_py(),
            index=int(index[begin]),
            count=int(count[begin]),
            content_type=content_type,
            problem=None if is_fine[begin] else _PROBLEM,
        )


_PROBLEM = (
    "its headers do not say which piece of a payload it is: odf-batch-index from 0 on and odf-batch-count are decimal "
    f"digits, the index is less than the count, and odf-batch-id has at most {_MAX_ID_SIZE} bytes"
)


def _numbers(column: pa.Array | None, start: int, size: int) -> npt.NDArray[np.int64]:
    """Decimal digits as numbers; -1 for what is none."""
    if column is None:
        return np.full(size, -1, np.int64)
    texts = column.slice(start, size)
    is_number = pc.match_substring_regex(pc.fill_null(texts, b"?"), rb"^[0-9]{1,9}$".decode())
    digits = pc.if_else(is_number, texts, pa.scalar(None, pa.binary())).cast(pa.string())
    numbers = pc.fill_null(digits.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return np.where(numbers > _MAX_COUNT, -1, numbers)


def _lengths(ids: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = pc.binary_length(ids).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found
