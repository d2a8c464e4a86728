"""The certificate of push sources: the Kafka ranges in the blocks tile the topic, and every record is accounted for.

Each block says which positions of its source's topic it covers and what became of the records there. Taken together
these must leave no gap and no overlap, so that anyone can see that nothing was lost or taken twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from odf_common.chain.walk import block_place
from odf_common.errors import CorruptedError, MalformedBytesError
from odf_common.messages.kafka_offsets import KafkaOffsets, reaches, same_positions
from odf_common.metadata.events import AddData
from odf_common.wire.encoded_block import EncodedBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCertificate:
    """What the blocks of one push source say together."""

    source_name: str
    topic: str
    topic_id: str
    next: Mapping[int, int] = field(default_factory=dict)
    blocks: int = 0
    messages: int = 0
    records: int = 0
    rows: int = 0
    duplicates: int = 0
    dead_letters: int = 0
    derived: int = 0
    late: int = 0
    accepted_gaps: int = 0


@dataclass(frozen=True, slots=True)
class _Known:
    certificate: SourceCertificate
    offsets: KafkaOffsets


class SourceCertifier:
    """Takes the blocks of one chain, oldest first, in memory that grows with the number of sources only."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def block(self, encoded: EncodedBlock) -> None:
        """Take the next block; CorruptedError names it if its range or its counts do not fit."""
        event = encoded.block.event
        if not isinstance(event, AddData) or event.new_source_state is None:
            return
        name = event.new_source_state.source_name
        try:
            offsets = KafkaOffsets.of_state(event.new_source_state)
        except MalformedBytesError as error:
            raise CorruptedError(block_place(encoded.hash), str(error)) from error
        if offsets is None:
            return
        known = self._known.get(name)
        rows = row_count(event)
        if known is not None and rows == 0 and offsets == known.offsets:
            return  # a block of a watermark repeats the state, so that it stays the latest
        reason = unaccounted(offsets, rows) or _break(offsets, known.offsets if known else None)
        if reason is not None:
            raise CorruptedError(block_place(encoded.hash), f"source {name!r}: {reason}")
        start = known.certificate if known else None
        self._known[name] = _Known(_extended(start, name, offsets, rows), offsets)

    def certificates(self) -> tuple[SourceCertificate, ...]:
        """What was found so far, in the order in which the sources first gave something."""
        return tuple(known.certificate for known in self._known.values())


def row_count(event: AddData) -> int:
    """How many rows the event's slice has."""
    if event.new_data is None:
        return 0
    interval = event.new_data.offset_interval
    return interval.end - interval.start + 1


def unaccounted(offsets: KafkaOffsets, rows: int) -> str | None:
    """What is wrong with a block's range or counts, whatever came before it, or None."""
    if not reaches(offsets.next, offsets.start):
        return f"its range ends before it starts: from {_shown(offsets.start)} to {_shown(offsets.next)}"
    accounted = rows + offsets.duplicates + offsets.dead_letters
    if offsets.records + offsets.derived != accounted:
        derived = f" and derived {offsets.derived} rows" if offsets.derived else ""
        return (
            f"it read {offsets.records} records{derived}, but has {rows} rows, {offsets.duplicates} duplicates and "
            f"{offsets.dead_letters} dead letters, which makes {accounted}"
        )
    covered = sum(offsets.next.values()) - sum(offsets.start.values())
    if offsets.messages > covered:
        return f"it read {offsets.messages} messages from a range of {covered} positions"
    return None


def _break(offsets: KafkaOffsets, before: KafkaOffsets | None) -> str | None:
    """How a range does not continue the one before, or None."""
    position = before.next if before is not None else {}
    if (gap := offsets.accepted_gap) is not None:
        if before is not None and gap.lost_topic_id != before.topic_id:
            return f"it accepts a gap behind topic id {gap.lost_topic_id}, the block before read {before.topic_id}"
        if not same_positions(gap.lost_next, position):
            return f"it accepts a gap behind {_shown(gap.lost_next)}, the block before ended at {_shown(position)}"
        return None
    if before is not None and offsets.topic_id != before.topic_id:
        return f"it read topic id {offsets.topic_id}, the block before {before.topic_id}, and no gap was accepted"
    if before is not None and offsets.topic != before.topic:
        return f"it read topic {offsets.topic}, the block before {before.topic}"
    if not same_positions(offsets.start, position):
        kind = "a gap" if reaches(offsets.start, position) else "an overlap"
        return f"{kind}: it starts at {_shown(offsets.start)}, the block before ended at {_shown(position)}"
    return None


def _extended(before: SourceCertificate | None, name: str, offsets: KafkaOffsets, rows: int) -> SourceCertificate:
    start = before or SourceCertificate(source_name=name, topic=offsets.topic, topic_id=offsets.topic_id)
    return replace(
        start,
        topic=offsets.topic,
        topic_id=offsets.topic_id,
        next=offsets.next,
        blocks=start.blocks + 1,
        messages=start.messages + offsets.messages,
        records=start.records + offsets.records,
        rows=start.rows + rows,
        duplicates=start.duplicates + offsets.duplicates,
        dead_letters=start.dead_letters + offsets.dead_letters,
        derived=start.derived + offsets.derived,
        late=start.late + offsets.late,
        accepted_gaps=start.accepted_gaps + (offsets.accepted_gap is not None),
    )


def _shown(positions: Mapping[int, int]) -> str:
    """Positions as `partition:position`, cut where there are many."""
    parts = [f"{partition}:{position}" for partition, position in sorted(positions.items())]
    shown = ", ".join(parts[:8]) + (", …" if len(parts) > 8 else "")
    return shown or "the beginning"
