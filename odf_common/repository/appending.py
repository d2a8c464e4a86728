"""Appending events to a dataset that others write to as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.rules import check_append
from odf_common.chain.state import ChainState, next_block
from odf_common.errors import RefCASFailedError
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import DatasetRef
from odf_common.metadata.events import AddData, MetadataEvent
from odf_common.metadata.fragments import SourceState
from odf_common.repository.repository import Repository
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal
from odf_common.wire.encoded_block import EncodedBlock

Decide = Callable[[ChainState], Sequence[MetadataEvent]]
"""Says which events to append to the chain as it is; called again when somebody else appended first."""

_TRIES = 20


def append_events(
    repository: Repository,
    dataset_ref: DatasetRef,
    events: Sequence[MetadataEvent] | Decide,
    system_time: Timestamp,
    *,
    tries: int = _TRIES,
) -> tuple[Multihash, ...]:
    """Append events with one move of the head, and return the hashes of their blocks; none if there is none to append.

    When somebody else moves the head at the same time, everything is decided again on what the chain is then;
    RefCASFailedError only after so many tries. AppendRefusedError: an event breaks a rule, nothing was appended.
    The blocks' system time is the given one, or that of the chain where it is later.
    """
    dataset = repository.open(dataset_ref)
    chain = MetadataChain(dataset.objects, dataset.refs)
    for left in range(tries - 1, -1, -1):
        state = chain.state()
        chosen = events(state) if callable(events) else events
        try:
            return chain.append(sealed(state, chosen, system_time))
        except RefCASFailedError:
            if not left:
                raise
    raise AssertionError("tries is at least 1")


def sealed(chain: ChainState, events: Sequence[MetadataEvent], system_time: Timestamp) -> list[EncodedBlock]:
    """The blocks that append events to a chain, each checked against every rule that needs no storage."""
    if chain.system_time is not None:
        system_time = max(system_time, chain.system_time)
    blocks = []
    for event in events:
        block = next_block(chain, event, system_time=system_time)
        check_append(chain, block)
        encoded = seal(block)
        chain = chain.followed_by(block, encoded.hash)
        blocks.append(encoded)
    return blocks


def without_rows(chain: ChainState, *, watermark: Timestamp | None, source_state: SourceState | None) -> AddData:
    """An AddData that continues a chain with a watermark and a source state alone; the checkpoint is repeated."""
    checkpoint = chain.last_add_data.checkpoint if chain.last_add_data else None
    return AddData(
        prev_checkpoint=checkpoint.physical_hash if checkpoint else None,
        prev_offset=chain.last_offset,
        new_checkpoint=checkpoint,
        new_watermark=watermark,
        new_source_state=source_state,
    )
