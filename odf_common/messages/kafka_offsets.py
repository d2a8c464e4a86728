"""How far a push source was read: the value of its source state in the chain (ODF 0.36, AddData.newSourceState)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field

from odf_common.errors import MalformedBytesError
from odf_common.identity.multihash import Multihash
from odf_common.messages.base import Message
from odf_common.messages.payload import FetchedState
from odf_common.metadata.fragments import SourceState

MAX_REPEATS = 100

KAFKA_OFFSETS = "odf-streams/kafka-offsets"
"""The kind of such a source state."""

Count = Annotated[int, Field(ge=0)]
Positions = Annotated[dict[int, Count], Field(max_length=100_000)]
"""Partition → position. A partition that is not named is at its beginning, 0."""


class AcceptedGap(Message):
    """A mark that somebody decided to go on although messages were lost: `lost` is what was there to be read before."""

    reason: str
    lost_topic_id: str
    lost_next: Positions


class Repeat(Message):
    """A message that was dropped because its event id had been taken before, and where the first one is."""

    partition: Count
    offset: Count
    first_partition: Count
    first_offset: Count
    block: Multihash | None = None
    """The block that covers the first one; absent where it was not in the chain yet."""


class KafkaOffsets(Message):
    """The half-open ranges `[start, next)` of topic positions that one block covers, and what became of them.

    `records` + `derived` = rows in the block's slice + `duplicates` + `dead_letters`: nothing is dropped silently. Of
    several blocks with one large payload only the last one moves `next`; each counts what is in its own slice.
    """

    topic: str
    topic_id: str
    start: Positions
    next: Positions
    messages: Count = 0
    records: Count = 0
    duplicates: Count = 0
    """Records that say nothing new, and those of messages that were taken before."""
    dead_letters: Count = 0
    derived: Count = 0
    """Rows that no record stands for: the first of each pair of a correction, and what a snapshot retracts."""
    late: Count = 0
    """Rows with an event time before the watermark that the dataset had."""
    repeats: Annotated[tuple[Repeat, ...], Field(max_length=MAX_REPEATS)] = ()
    """Messages that were taken before, for their receipts; of very many only some."""
    fetched: FetchedState | None = None
    """What a polling source was at when this was fetched."""
    accepted_gap: AcceptedGap | None = None

    @classmethod
    def of_state(cls, state: SourceState) -> Self | None:
        """The offsets in a source state; None for a state of another kind, MalformedBytesError if they are damaged."""
        if state.kind != KAFKA_OFFSETS:
            return None
        try:
            return cls.from_json(state.value.encode())
        except MalformedBytesError as error:
            raise MalformedBytesError(f"the state of source {state.source_name!r}: {error}") from error

    def to_state(self, source_name: str) -> SourceState:
        """The source state that a block carries."""
        return SourceState(source_name=source_name, kind=KAFKA_OFFSETS, value=self.to_json().decode())


def same_positions(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """Whether two maps of positions mean the same: a partition that is not named is at 0."""
    return all(one.get(partition, 0) == other.get(partition, 0) for partition in {*one, *other})


def reaches(one: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """Whether `one` is at `other` or behind it in no partition."""
    return all(one.get(partition, 0) >= position for partition, position in other.items())
