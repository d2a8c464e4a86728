"""What every read step gives."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import pyarrow as pa

from odf_common.errors import MalformedBytesError
from odf_common.ingest.messages import Problem, Unreadable
from odf_common.ingest.pieces import MAX_MESSAGE_SIZE


class InvalidPayloadError(MalformedBytesError):
    """A payload cannot be read as a whole; none of its records is taken."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.reason)

    @classmethod
    def of(cls, code: str, reason: str) -> InvalidPayloadError:
        """For a problem of this code."""
        return cls(Problem(code, reason))


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of a batch of messages, in their order."""

    rows: pa.Table
    timestamps: pa.ChunkedArray
    """Of the message of each row, as Kafka has it."""
    unreadable: list[Unreadable]
    letters: Callable[[Sequence[tuple[int, Problem]]], list[Unreadable]] | None = None
    """Makes dead letters of rows that turn out to be of no use later; None where their own bytes are not known."""

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        """All records of parts of a payload, of which there is one at least."""
        if len(parts) == 1:
            return parts[0]
        chunks = [chunk for part in parts for chunk in part.timestamps.chunks]
        return cls(
            rows=pa.concat_tables([part.rows for part in parts], promote_options="permissive"),
            timestamps=pa.chunked_array(chunks, parts[0].timestamps.type),
            unreadable=[letter for part in parts for letter in part.unreadable],
            letters=_joined_letters(parts),
        )

    @property
    def count(self) -> int:
        """All of them, read or not."""
        return int(self.rows.num_rows) + len(self.unreadable)


def _joined_letters(parts: Sequence[Records]) -> Callable[[Sequence[tuple[int, Problem]]], list[Unreadable]] | None:
    """The dead letters of rows by their places among those of all parts."""
    if any(part.letters is None for part in parts):
        return None
    ends = list(accumulate(part.rows.num_rows for part in parts))

    def of_rows(problems: Sequence[tuple[int, Problem]]) -> list[Unreadable]:
        found = []
        for row, problem in problems:
            number = bisect_right(ends, row)
            part = parts[number]
            assert part.letters is not None
            found += part.letters([(row - (ends[number] - part.rows.num_rows), problem)])
        return found

    return of_rows


class Reader(Protocol):
    """A read step, ready to be used on any number of batches."""

    def read(self, messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> Records:
        """The records of messages of the schema `MESSAGES`. Raises for no content, however broken.

        What is read of a message does not depend on the messages around it, except for columns and types that had to
        be inferred. Messages of more than `max_size` bytes are not looked at.
        """
        ...

    def following(self, rows: pa.Schema) -> Reader:
        """The reader of what comes behind rows with these columns: it keeps what had to be inferred."""
        ...
