"""Waiting until published positions are in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odf_common.messages.block_appended import AppendedBlock, SourceProgress
from services.gateway.feed import Subscription
from services.gateway.messages import CommittedBlock, PositionRange


class SkippedError(Exception):
    """Somebody accepted a gap in which published positions lie: no block will cover them."""


async def committed(
    subscription: Subscription,
    source_name: str,
    topic: str,
    positions: Sequence[PositionRange],
    into: list[CommittedBlock],
) -> None:
    """Return when all positions are in blocks, which are added to `into` as they come.

    SkippedError if some never will be.
    """
    missing = [(each.partition, each.start, each.next) for each in positions]
    seen: set[int] = set()
    while missing:
        block = (await subscription.next()).data
        progress = block.source
        if progress is None or progress.name != source_name or progress.topic != topic:
            continue
        if block.sequence_number in seen:
            continue
        seen.add(block.sequence_number)
        if progress.accepted_gap is not None and any(
            start < progress.start.get(partition, 0) for partition, start, _ in missing
        ):
            raise SkippedError(progress.accepted_gap.reason)
        if any(_covers(progress, *each) for each in missing):
            into.append(_receipt(block, progress))
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


def _receipt(block: AppendedBlock, progress: SourceProgress) -> CommittedBlock:
    return CommittedBlock(
        block_hash=block.block_hash,
        sequence_number=block.sequence_number,
        offset_interval=block.offset_interval,
        num_records=block.num_records,
        duplicates=progress.duplicates,
        dead_letters=progress.dead_letters,
        watermark=block.watermark,
    )
