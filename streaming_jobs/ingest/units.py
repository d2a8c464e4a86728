"""What messages are taken apart into: each unit becomes one batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.identity.multihash import Multihash
from odf_common.ingest.messages import Problem
from odf_common.messages.kafka_offsets import Repeat
from odf_common.messages.payload import UploadedPayload


@dataclass(frozen=True, slots=True)
class First:
    """The message that took an event id. `block` covers it, once that is in the chain."""

    partition: int
    offset: int
    block: Multihash | None = None


Taken = tuple[bytes, int, int]
"""The key of an event id that a unit takes, with partition and offset: no later message with it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Messages that are covered together."""

    messages: pa.Table
    repeats: tuple[Repeat, ...] = ()
    """Of messages whose event id was taken before; at most MAX_REPEATS are named."""
    taken: tuple[Taken, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRun(Unit):
    """Messages of one format, whose records have nothing to do with each other."""

    media_type: str | None
    repeated: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """The rows of `messages` whose records are duplicates as a whole."""

    def new_messages(self) -> pa.Table:
        """The others."""
        if not len(self.repeated):
            return self.messages
        return self.messages.take(pa.array(np.setdiff1d(np.arange(self.messages.num_rows), self.repeated)))

    def part(self, start: int, end: int) -> PlainRun:
        """The run of the messages `[start, end)`."""
        messages = self.messages.slice(start, end - start)
        places = set(zip(messages["partition"].to_pylist(), messages["offset"].to_pylist(), strict=True))
        inside = (self.repeated >= start) & (self.repeated < end)
        return PlainRun(
            messages=messages,
            media_type=self.media_type,
            repeated=self.repeated[inside] - start,
            repeats=tuple(each for each in self.repeats if (each.partition, each.offset) in places),
            taken=tuple(each for each in self.taken if each[1:] in places),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload(Unit):
    """Messages that are one payload, taken as a whole or not at all. Each is whole records, as any message."""

    media_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded(Unit):
    """One message, which stands for a payload in the upload area."""

    upload: UploadedPayload


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Unit):
    """A payload that is not taken: its event id was taken before, or what it builds on is gone."""

    media_type: str | None
    upload: UploadedPayload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Unit):
    """Messages that become dead letters, each as a whole."""

    problem: Problem


def ends_of(messages: pa.Table) -> dict[int, int]:
    """Partition → the position behind its last message."""
    last = messages.group_by("partition").aggregate([("offset", "max")])
    return {
        partition: offset + 1
        for partition, offset in zip(last["partition"].to_pylist(), last["offset_max"].to_pylist(), strict=True)
    }
