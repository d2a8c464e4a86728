"""Waiting until published positions are in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from odf_common.messages.block_appended import AppendedBlock, SourceProgress
from odf_common.messages.kafka_offsets import Repeat, same_positions
from services.gateway.feed import Subscription
from services.gateway.messages import PositionRange


class SkippedError(Exception):
    """Somebody accepted a gap in which published positions lie: no block will cover them."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A published message that was taken before, and the block that says so."""

    repeat: Repeat
    block: AppendedBlock
    progress: SourceProgress


@dataclass(slots=True)
class Receipt:
    """What has become of published positions so far."""

    blocks: list[AppendedBlock] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)


async def committed(
    subscription: Subscription,
    source_name: str,
    topic: str,
    positions: Sequence[PositionRange],
    into: Receipt,
) -> None:
    """Return when all positions are in blocks, which are added to `into` as they come.

    A large payload makes several blocks. All but the last one are before its positions: they start and end at the same
    place. Who covers them is known when the last one comes. SkippedError if some positions never will be in a block.
    """
    missing = [(each.partition, each.start, each.next) for each in positions]
    parts: list[AppendedBlock] = []
    seen: set[int] = set()
    while missing:
        block = (await subscription.next()).data
        progress = block.source
        if progress is None or progress.name != source_name or progress.topic != topic:
            continue
        if block.sequence_number in seen:
            continue
        seen.add(block.sequence_number)
        if progress.accepted_gap is not None:
            if any(start < progress.start.get(partition, 0) for partition, start, _ in missing):
                raise SkippedError(progress.accepted_gap.reason)
        elif same_positions(progress.start, progress.next):
            parts.append(block)
            continue
        if any(_covers(progress, *each) for each in missing):
            into.blocks += [*parts, block]
            into.dropped += _dropped(block, progress, positions)
        parts = []
        missing = list(_behind(progress, missing))


def _behind(progress: SourceProgress, missing: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """What is still missing after a block."""
    for partition, start, end in missing:
        reached = progress.next.get(partition, 0)
        if reached < end:
            yield partition, max(start, reached), end


def _covers(progress: SourceProgress, partition: int, start: int, end: int) -> bool:
    """Whether a block covers any of these positions."""
    return progress.start.get(partition, 0) < end and start < progress.next.get(partition, 0)


def _dropped(block: AppendedBlock, progress: SourceProgress, positions: Sequence[PositionRange]) -> Iterator[Dropped]:
    for repeat in progress.repeats:
        if any(each.partition == repeat.partition and each.start <= repeat.offset < each.next for each in positions):
            yield Dropped(repeat, block, progress)
