"""Waiting until blocks cover what was sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from odf_common.identity.did import DatasetId
from odf_common.messages.block_appended import AppendedBlock
from odf_common.messages.kafka_offsets import reaches

_POLL_S = 0.25


@dataclass(slots=True)
class Receipt:
    """The blocks that cover a range of positions, and what became of their records."""

    blocks: list[AppendedBlock] = field(default_factory=list)
    covered: dict[int, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows in the blocks."""
        return sum(block.num_records for block in self.blocks)

    @property
    def duplicates(self) -> int:
        """Records that were known already."""
        return sum(block.source.duplicates for block in self.blocks if block.source)

    @property
    def dead_letters(self) -> int:
        """Records that could not be read."""
        return sum(block.source.dead_letters for block in self.blocks if block.source)


def add_block(receipt: Receipt, block: AppendedBlock, start: Mapping[int, int], end: Mapping[int, int]) -> None:
    """Take a block of the source into the receipt if it covers some of the range; a repeated one counts once."""
    assert block.source is not None, "only blocks of a source are told to a receipt"
    overlaps = any(
        block.source.start.get(partition, 0) < end[partition] and position > start[partition]
        for partition, position in block.source.next.items()
        if partition in end
    )
    if overlaps and all(known.block_hash != block.block_hash for known in receipt.blocks):
        receipt.blocks.append(block)
    for partition, position in block.source.next.items():
        receipt.covered[partition] = max(receipt.covered.get(partition, 0), position)


def wait_for_blocks(
    poll: Callable[[float], list[AppendedBlock]],
    dataset_id: DatasetId,
    source_name: str,
    start: Mapping[int, int],
    end: Mapping[int, int],
    *,
    timeout_s: float,
    on_progress: Callable[[Receipt], None] = lambda receipt: None,
) -> Receipt | None:
    """The receipt once blocks cover the range; None if none of them came for so long."""
    receipt = Receipt()
    deadline = time.monotonic() + timeout_s
    while not reaches(receipt.covered, end):
        if time.monotonic() > deadline:
            return None
        for block in poll(_POLL_S):
            if block.dataset_id == dataset_id and block.source is not None and block.source.name == source_name:
                add_block(receipt, block, start, end)
                deadline = time.monotonic() + timeout_s
        on_progress(receipt)
    return receipt
