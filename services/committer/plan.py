"""What becomes of all that waits for one dataset: the decisions in their order, each on the chain after the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from odf_common.chain.state import ChainState
from odf_common.messages.completion import Completion, Rejection, RejectionReason
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.fragments import DataSlice
from odf_common.wire.encoded_block import EncodedBlock
from services.committer.decide import AlreadyCommitted, Append, Decision, Early, Reject, decide
from services.committer.waiting_room import Received


@dataclass(slots=True)
class Plan:
    """What is to be done for one dataset. `chain` is what it says once it is done."""

    chain: ChainState
    blocks: list[EncodedBlock] = field(default_factory=list)
    committed: list[Completion] = field(default_factory=list)
    repeated: list[Completion] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    early: list[Received] = field(default_factory=list)


def plan(
    chain: ChainState, received: Sequence[Received], *, missing_slice: Callable[[Completion], DataSlice | None]
) -> Plan:
    """Decide on completions in the order of their arrival, and again on the early ones when the chain has moved."""
    result = Plan(chain)
    pending = received
    while pending:
        moved = len(result.blocks)
        result.early = []
        for each in pending:
            _place(result, each, missing_slice)
        if len(result.blocks) == moved:
            break
        pending = sorted(result.early, key=_order)
    return result


def rejection(done: Completion, reason: RejectionReason, message: str) -> Rejection:
    """The answer to a completion that is not committed."""
    state = done.add_data.new_source_state
    return Rejection(
        completion_id=done.id,
        dataset_id=done.dataset_id,
        source_name=None if state is None else state.source_name,
        reason=reason,
        message=message,
    )


def _place(result: Plan, received: Received, missing_slice: Callable[[Completion], DataSlice | None]) -> None:
    done = received.completion
    match _decision(result.chain, done, missing_slice):
        case Append(blocks, chain):
            result.blocks.extend(blocks)
            result.committed.append(done)
            result.chain = chain
        case AlreadyCommitted():
            result.repeated.append(done)
        case Early():
            result.early.append(received)
        case Reject(reason, message):
            result.rejections.append(rejection(done, reason, message))


def _decision(chain: ChainState, done: Completion, missing_slice: Callable[[Completion], DataSlice | None]) -> Decision:
    decision = decide(chain, done)
    if isinstance(decision, Append) and (data := missing_slice(done)) is not None:
        message = f"slice {data.physical_hash} is not in the staging area with its {data.size} bytes: stage it again"
        return Reject(RejectionReason.MISSING_SLICE, message)
    return decision


def _order(received: Received) -> tuple[int, int]:
    """Roughly the order in which batches were made: only to need few rounds."""
    done = received.completion
    added = done.add_data
    offset = done.slices[0].offset_interval.start if done.slices else 0
    offsets = None if added.new_source_state is None else KafkaOffsets.of_state(added.new_source_state)
    return offset, 0 if offsets is None else sum(offsets.start.values())
