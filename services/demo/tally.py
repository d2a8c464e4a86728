"""What a replay has published, and what the notifications say became of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from odf_common.messages.block_appended import AppendedBlock


@dataclass(slots=True, kw_only=True)
class Tally:
    """The figures of one source; its topic has one partition that counts, and one event per message.

    An event's latency is the time from its `produce` call to the notification of the block that covers its position.
    """

    base: int
    """The topic's end when the replay began."""
    first_block: int = 0
    """The chain's length then: blocks before it are told late, and belong to what was before."""
    source_name: str = "default"
    published: int = 0
    """Events that the broker confirmed."""
    end: int = 0
    """The position behind the last of them."""
    covered: int = 0
    """The position up to which blocks were told."""
    rows: int = 0
    duplicates: int = 0
    dead_letters: int = 0
    blocks: int = 0
    notifications: int = 0
    newest: AppendedBlock | None = None
    handed_over: array[float] = field(default_factory=lambda: array("d"))
    """When each event from `base` on was given to the producer."""
    latencies: array[float] = field(default_factory=lambda: array("d"))
    """In seconds, of each event that a block covers."""

    def __post_init__(self) -> None:
        self.end = self.covered = self.base

    @property
    def lag(self) -> int:
        """Positions that no block covers yet."""
        return max(self.end - self.covered, 0)

    @property
    def of_others(self) -> int:
        """Messages that somebody else wrote to the topic meanwhile: what blocks say counts them, too."""
        return max(self.end, self.covered) - self.base - self.published

    def hand_over(self, at: float) -> None:
        """An event goes to the producer."""
        self.handed_over.append(at)

    def confirm(self, position: int) -> None:
        """The broker has an event."""
        self.published += 1
        self.end = max(self.end, position + 1)

    def tell(self, block: AppendedBlock, at: float) -> None:
        """A notification came. One that comes again counts as a notification only."""
        if block.sequence_number < self.first_block:
            return
        self.notifications += 1
        if self.newest is not None and block.sequence_number <= self.newest.sequence_number:
            return
        self.newest = block
        self.blocks += 1
        self.rows += block.num_records
        if block.source is not None and block.source.name == self.source_name:
            self.duplicates += block.source.duplicates
            self.dead_letters += block.source.dead_letters
            self._cover(block.source.next.get(0, 0), at)

    def _cover(self, following: int, at: float) -> None:
        begin, self.covered = self.covered, max(self.covered, following)
        for moment in self.handed_over[begin - self.base : self.covered - self.base]:
            self.latencies.append(at - moment)


def percentiles_ms(tallies: Iterable[Tally], *, last: int | None = None) -> tuple[float, float] | None:
    """p50 and p99 of the latencies in milliseconds, over the last ones of each or over all; None without any."""
    import numpy as np

    parts = [np.array(each.latencies[-last:] if last else each.latencies) for each in tallies]
    found = np.concatenate(parts) if parts else np.empty(0)
    if not len(found):
        return None
    p50, p99 = np.percentile(found, (50, 99))
    return round(float(p50) * 1000, 1), round(float(p99) * 1000, 1)
