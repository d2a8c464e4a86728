"""How far a chain says that its sources were read."""

from __future__ import annotations

from odf_common.chain.state import ChainState
from odf_common.errors import MalformedBytesError
from odf_common.messages.kafka_offsets import KafkaOffsets


def read_positions(chain: ChainState, source_name: str) -> dict[int, int]:
    """The next positions of a source's topic; none where the chain has none that we understand."""
    state = chain.source_state(source_name)
    try:
        offsets = KafkaOffsets.of_state(state) if state else None
    except MalformedBytesError:
        return {}
    return dict(sorted(offsets.next.items())) if offsets else {}
