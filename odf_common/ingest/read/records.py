"""What every read step gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from odf_common.ingest.messages import Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of a batch of messages, in their order."""

    rows: pa.Table
    timestamps: pa.ChunkedArray
    """Of the message of each row, as Kafka has it."""
    unreadable: list[Unreadable]

    @property
    def count(self) -> int:
        """All of them, read or not."""
        return int(self.rows.num_rows) + len(self.unreadable)


class Reader(Protocol):
    """A read step, ready to be used on any number of batches."""

    def read(self, messages: pa.Table) -> Records:
        """The records of messages of the schema `MESSAGES`. Raises for no content, however broken.

        What is read of a message does not depend on the messages around it, except for columns and types that had to
        be inferred.
        """
        ...
