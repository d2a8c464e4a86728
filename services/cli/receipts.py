"""Waiting until blocks cover what was sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from odf_common.identity.did import DatasetId
from odf_common.messages.block_appended import AppendedBlock, SourceProgress
from odf_common.messages.kafka_offsets import KafkaOffsets, Repeat, reaches, same_positions

_POLL_S = 0.25


@dataclass(slots=True)
class Receipt:
    """The blocks that cover a range of positions, and what became of their records."""

    blocks: list[AppendedBlock] = field(default_factory=list)
    covered: dict[int, int] = field(default_factory=dict)
    parts: list[AppendedBlock] = field(default_factory=list)
    """Blocks of a payload that takes several, until the one that covers its positions comes."""
    repeats: list[Repeat] = field(default_factory=list)
    """Messages of the range that were taken before."""

    @property
    def rows(self) -> int:
        """Rows in the blocks."""
        return sum(block.num_records for block in self.blocks)

    @property
    def duplicates(self) -> int:
        """Records that were known already."""
        return sum(source.duplicates for source in self._sources())

    @property
    def dead_letters(self) -> int:
        """Records that could not be read."""
        return sum(source.dead_letters for source in self._sources())

    @property
    def derived(self) -> int:
        """Rows that no record stands for."""
        return sum(source.derived for source in self._sources())

    @property
    def late(self) -> int:
        """Rows behind the watermark."""
        return sum(source.late for source in self._sources())

    def block_of(self, partition: int, offset: int) -> AppendedBlock | None:
        """The block that covers a position."""
        return next((block for block in self.blocks if block.source and _holds(block.source, partition, offset)), None)

    def _sources(self) -> Iterator[SourceProgress]:
        return (block.source for block in self.blocks if block.source)


def _holds(offsets: KafkaOffsets, partition: int, offset: int) -> bool:
    return offsets.start.get(partition, 0) <= offset < offsets.next.get(partition, 0)


def add_block(receipt: Receipt, block: AppendedBlock, start: Mapping[int, int], end: Mapping[int, int]) -> None:
    """Take a block of the source into the receipt if it covers some of the range; a repeated one counts once."""
    assert block.source is not None, "only blocks of a source are told to a receipt"
    if any(known.block_hash == block.block_hash for known in (*receipt.blocks, *receipt.parts)):
        return
    if block.num_records and same_positions(block.source.start, block.source.next):
        receipt.parts.append(block)
        return
    overlaps = any(
        block.source.start.get(partition, 0) < end[partition] and position > start[partition]
        for partition, position in block.source.next.items()
        if partition in end
    )
    if overlaps and not _repeats_state(receipt, block):
        receipt.blocks += [*_parts_of(receipt, block.source), block]
        receipt.repeats += [
            repeat
            for repeat in block.source.repeats
            if start.get(repeat.partition, 0) <= repeat.offset < end.get(repeat.partition, 0)
        ]
    receipt.parts.clear()
    for partition, position in block.source.next.items():
        receipt.covered[partition] = max(receipt.covered.get(partition, 0), position)


def _parts_of(receipt: Receipt, source: KafkaOffsets) -> list[AppendedBlock]:
    return [part for part in receipt.parts if part.source and same_positions(part.source.start, source.start)]


def _repeats_state(receipt: Receipt, block: AppendedBlock) -> bool:
    """Whether the block only carries on what the one before said, as that of a watermark does."""
    return bool(receipt.blocks) and not block.num_records and receipt.blocks[-1].source == block.source


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
