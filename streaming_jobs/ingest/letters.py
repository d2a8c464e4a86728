"""Dead letters, with what is needed to read them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from odf_common.ingest.messages import Problem, Unreadable, all_unreadable
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE
from streaming_jobs.ingest.headers import headers_of

_AT_ONCE = 32 << 20  # bytes
_MAX_HEADER = 200
"""Bytes of a header that a note repeats; longer ones name no format and no payload that is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A record or a message that is not taken."""

    record: Unreadable
    content_type: str | None = None
    """Of its bytes; None for the format of the source."""
    piece_of: str | None = None
    """The payload that it is a piece of."""


class MessageLetters:
    """Messages as dead letters, each as a whole; made when they are asked for, as they may be many and large."""

    def __init__(self, messages: pa.Table, problem: Problem | Mapping[int, Problem]) -> None:
        """With a mapping, the messages in its rows."""
        if isinstance(problem, Problem):
            self._messages = messages
            self._problems = [problem] * messages.num_rows
        else:
            rows = sorted(problem)
            self._messages = messages.take(pa.array(rows, pa.int64()))
            self._problems = [problem[row] for row in rows]

    def __len__(self) -> int:
        return len(self._problems)

    def __iter__(self) -> Iterator[Letter]:
        step = max(1, _AT_ONCE * len(self) // max(self._messages.nbytes, 1))
        for start in range(0, len(self), step):
            yield from _letters(self._messages.slice(start, step), self._problems[start : start + step])


def _letters(messages: pa.Table, problems: list[Problem]) -> Iterator[Letter]:
    headers = headers_of(messages)
    count = messages.num_rows
    values = [value or b"" for value in messages["value"].to_pylist()]
    records = all_unreadable(messages, range(count), problems, [None] * count, values)
    types, pieces = _texts(headers.content_type, count), _texts(headers.batch_id, count)
    for record, content_type, piece in zip(records, types, pieces, strict=True):
        yield Letter(record=record, content_type=content_type, piece_of=piece)


def letters_of_records(
    records: Iterable[Unreadable], media_type: str | None, *, in_upload: bool = False
) -> list[Letter]:
    """Records of payloads of one media type; one that is all of its message is that message."""
    whole = UPLOAD_MEDIA_TYPE if in_upload else media_type
    return [Letter(record=each, content_type=whole if each.index is None else media_type) for each in records]


def _texts(column: pa.Array | None, count: int) -> list[str | None]:
    if column is None:
        return [None] * count
    return [None if value is None else value[:_MAX_HEADER].decode(errors="replace") for value in column.to_pylist()]
