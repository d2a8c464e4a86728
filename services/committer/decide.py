"""What to do with a finished micro-batch, given what its chain says: a function (docs/decisions/0009-commit.md)."""

from __future__ import annotations

from dataclasses import dataclass

from odf_common.chain.rules import check_append
from odf_common.chain.source_certificate import row_count, unaccounted
from odf_common.chain.state import ChainState, logical_schema, next_block
from odf_common.errors import AppendRefusedError, MalformedBytesError
from odf_common.messages.completion import Completion, RejectionReason
from odf_common.messages.kafka_offsets import KafkaOffsets, reaches, same_positions
from odf_common.metadata.events import AddData, SetDataSchema
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import NotEncodableError, seal
from odf_common.wire.encoded_block import EncodedBlock


@dataclass(frozen=True, slots=True)
class Append:
    """The batch comes next: these blocks, after which the chain says this."""

    blocks: tuple[EncodedBlock, ...]
    chain: ChainState


@dataclass(frozen=True, slots=True)
class AlreadyCommitted:
    """The chain covers all that the batch covers: it was delivered before."""


@dataclass(frozen=True, slots=True)
class Early:
    """A batch before it is still missing; it may be on its way."""

    missing: str
    """What the chain lacks, for people."""


@dataclass(frozen=True, slots=True)
class Reject:
    """The batch cannot be committed."""

    reason: RejectionReason
    message: str


Decision = Append | AlreadyCommitted | Early | Reject


class _RejectedError(Exception):
    """Ends a decision early; never leaves this module."""

    def __init__(self, reason: RejectionReason, message: str) -> None:
        super().__init__(message)
        self.rejection = Reject(reason, message)


def decide(chain: ChainState, done: Completion) -> Decision:
    """Say what to do with a finished micro-batch. The same answer whoever asks, and whenever."""
    try:
        return _decide(chain, done)
    except _RejectedError as rejected:
        return rejected.rejection


def _decide(chain: ChainState, done: Completion) -> Decision:
    name, batch = _offsets(done)
    known = _known_offsets(chain, name)
    if _is_covered(known, batch):
        return AlreadyCommitted()
    _check_source(chain, name)
    _check_topic(known, batch)
    if (early := _place_in_topic(known, batch)) is not None:
        return early
    if (early := _place_in_data(chain, done)) is not None:
        return early
    _check_time(chain, done.system_time)
    return _appended(chain, done)


def _offsets(done: Completion) -> tuple[str, KafkaOffsets]:
    """The source's name and the positions that the batch covers."""
    *parts, last = [_offsets_of(event) for event in done.events if isinstance(event, AddData)]
    name, batch = last
    for part_name, part in parts:
        # Of a large payload everything but its end covers nothing: it is in the chain whole, or not at all.
        if part_name != name or (part.topic, part.topic_id) != (batch.topic, batch.topic_id):
            raise _RejectedError(RejectionReason.REFUSED, "the slices of the batch are of different sources or topics")
        if not (same_positions(part.start, batch.start) and same_positions(part.next, batch.start)):
            facts = f"a slice that is not the batch's last covers {_shown(part.start)} to {_shown(part.next)}"
            raise _RejectedError(RejectionReason.REFUSED, f"{facts}, the batch starts at {_shown(batch.start)}")
    return name, batch


def _offsets_of(added: AddData) -> tuple[str, KafkaOffsets]:
    state = added.new_source_state
    try:
        offsets = None if state is None else KafkaOffsets.of_state(state)
    except MalformedBytesError as error:
        raise _RejectedError(RejectionReason.REFUSED, str(error)) from error
    if state is None or offsets is None:
        raise _RejectedError(RejectionReason.REFUSED, "the batch does not say which Kafka positions it covers")
    if offsets.accepted_gap is not None:
        # Only people accept that messages are lost, and they write it into the chain themselves.
        raise _RejectedError(RejectionReason.REFUSED, "the batch accepts a gap; only `odf source resume` does that")
    # In a chain it could not be mended any more: its certificate would be broken for ever.
    if (reason := unaccounted(offsets, row_count(added))) is not None:
        raise _RejectedError(RejectionReason.REFUSED, f"the batch does not add up: {reason}")
    return state.source_name, offsets


def _known_offsets(chain: ChainState, name: str) -> KafkaOffsets | None:
    """How far the chain has read the source."""
    state = chain.source_state(name)
    try:
        return None if state is None else KafkaOffsets.of_state(state)
    except MalformedBytesError as error:
        raise _RejectedError(RejectionReason.REFUSED, f"the chain cannot be continued: {error}") from error


def _is_covered(known: KafkaOffsets | None, batch: KafkaOffsets) -> bool:
    reached = known.next if known is not None and known.topic_id == batch.topic_id else {}
    return reaches(reached, batch.next)


def _check_source(chain: ChainState, name: str) -> None:
    if chain.source(name) is None:
        message = f"the dataset has no active source {name!r}: it was disabled or never added"
        raise _RejectedError(RejectionReason.SOURCE_INACTIVE, message)


def _check_topic(known: KafkaOffsets | None, batch: KafkaOffsets) -> None:
    if known is not None and known.topic_id != batch.topic_id:
        facts = f"the batch was read from topic {batch.topic} with id {batch.topic_id}, the chain has {known.topic_id}"
        raise _RejectedError(RejectionReason.STALE, facts)
    if known is not None and known.topic != batch.topic:
        facts = f"the batch calls its topic {batch.topic}, the chain knows it as {known.topic}"
        raise _RejectedError(RejectionReason.REFUSED, facts)


def _place_in_topic(known: KafkaOffsets | None, batch: KafkaOffsets) -> Early | None:
    """None if the batch continues what the chain has read."""
    reached = {} if known is None else known.next
    if same_positions(batch.start, reached):
        return None
    facts = f"the batch starts at {_shown(batch.start)}, the chain has read to {_shown(reached)}"
    if reaches(batch.start, reached):
        return Early(facts)
    raise _RejectedError(RejectionReason.STALE, facts)


def _place_in_data(chain: ChainState, done: Completion) -> Early | None:
    """None if the batch's records continue those of the chain, or it has none."""
    start = _first_offset(done)
    if start is None or start == chain.next_offset:
        return None
    facts = f"the batch starts at offset {start}, the chain goes on at {chain.next_offset}"
    if start > chain.next_offset:
        return Early(facts)
    raise _RejectedError(RejectionReason.STALE, facts)


def _first_offset(done: Completion) -> int | None:
    """The offset that the batch's first record has, or would have; None where it does not say."""
    if done.slices:
        return done.slices[0].offset_interval.start
    prev_offset = done.add_data.prev_offset
    return None if prev_offset is None else prev_offset + 1


def _check_time(chain: ChainState, system_time: Timestamp) -> None:
    if chain.system_time is not None and system_time < chain.system_time:
        message = f"the batch has system time {system_time}, the chain has reached {chain.system_time}"
        raise _RejectedError(RejectionReason.STALE, message)


def _appended(chain: ChainState, done: Completion) -> Append:
    blocks = []
    for event in done.events:
        if isinstance(event, SetDataSchema) and _says_nothing_new(chain, event):
            continue
        fitted = _fitted(chain, event) if isinstance(event, AddData) else event
        block = next_block(chain, fitted, system_time=done.system_time)
        try:
            check_append(chain, block)
            encoded = seal(block)
        except (AppendRefusedError, NotEncodableError) as error:
            raise _RejectedError(RejectionReason.REFUSED, f"{error} [{error.code}]") from error
        chain = chain.followed_by(block, encoded.hash)
        blocks.append(encoded)
    return Append(tuple(blocks), chain)


def _fitted(chain: ChainState, added: AddData) -> AddData:
    """The event with what only the chain knows: what came before, and the watermark that may not go back."""
    if added.new_checkpoint is not None:
        raise _RejectedError(RejectionReason.REFUSED, "a source keeps no checkpoint, but the batch brings one")
    last = chain.last_add_data
    checkpoint = None if last is None or last.checkpoint is None else last.checkpoint.physical_hash
    watermarks = [mark for mark in (added.new_watermark, chain.watermark) if mark is not None]
    return added.model_copy(
        update={
            "prev_checkpoint": checkpoint,
            "prev_offset": chain.last_offset,
            "new_watermark": max(watermarks, default=None),
        }
    )


def _says_nothing_new(chain: ChainState, schema: SetDataSchema) -> bool:
    """Another source of the dataset may have set the same schema meanwhile."""
    try:
        return chain.data_schema is not None and logical_schema(schema) == chain.data_schema
    except MalformedBytesError:
        return False  # the rules say what is wrong with it


_SHOWN_PARTITIONS = 8


def _shown(positions: dict[int, int]) -> str:
    """Positions as `0:5 1:7`, a few of them."""
    first = [f"{partition}:{position}" for partition, position in sorted(positions.items())[:_SHOWN_PARTITIONS]]
    more = len(positions) - len(first)
    return " ".join(first or ["the beginning"]) + (f" and {more} more partitions" if more else "")
