"""Where payloads that were sent again had been taken the first time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from odf_common.catalog.records import DatasetEntry
from odf_common.identity.multihash import Multihash
from odf_common.messages.block_appended import SourceProgress
from services.gateway.messages import FirstTaken
from services.gateway.publisher import ranges_of
from services.gateway.receipts import Dropped
from services.gateway.replay import History

MAX_BLOCKS = 1_000
"""Blocks that are looked at for the first ones: those that the ingest job cannot name are new."""

Position = tuple[int, int]
"""Partition and offset."""


async def first_taken(history: History, entry: DatasetEntry, dropped: Sequence[Dropped]) -> tuple[FirstTaken, ...]:
    """The positions of the first ones, by the blocks that cover them."""
    known: dict[Position, Multihash | None] = {}
    unknown: dict[Position, Dropped] = {}
    for each in dropped:
        position = (each.repeat.first_partition, each.repeat.first_offset)
        if each.repeat.block is not None:
            known[position] = each.repeat.block
        elif covers(each.progress, position):
            known[position] = each.block.block_hash  # both came in one batch
        else:
            unknown[position] = each
    if unknown:
        known |= await asyncio.to_thread(_looked_up, history, entry, unknown)
    by_block: dict[Multihash | None, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (partition, offset), block in known.items():
        by_block[block][partition].append(offset)
    return tuple(
        FirstTaken(block_hash=block, positions=tuple(ranges_of(offsets))) for block, offsets in by_block.items()
    )


def covers(progress: SourceProgress, position: Position) -> bool:
    """Whether a block covers a position."""
    partition, offset = position
    return progress.start.get(partition, 0) <= offset < progress.next.get(partition, 0)


def _looked_up(
    history: History, entry: DatasetEntry, wanted: Mapping[Position, Dropped]
) -> dict[Position, Multihash | None]:
    """The blocks of positions, looked for in the chain from the newest of the blocks that tell of them."""
    found: dict[Position, Multihash | None] = dict.fromkeys(wanted)
    newest = max(wanted.values(), key=lambda each: each.block.sequence_number)
    left = set(wanted)
    for block in history.back_from(entry, newest.block.block_hash, limit=MAX_BLOCKS):
        progress = block.source
        if progress is None or not _is_of(progress, newest.progress):
            continue
        for position in [each for each in left if covers(progress, each)]:
            found[position] = block.block_hash
            left.discard(position)
        if not left:
            break
    return found


def _is_of(progress: SourceProgress, other: SourceProgress) -> bool:
    return (progress.name, progress.topic_id) == (other.name, other.topic_id)
