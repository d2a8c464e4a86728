"""How far a chain says that its sources were read."""

from __future__ import annotations

from odf_common.chain.state import ChainState
from odf_common.errors import MalformedBytesError
from odf_common.messages.kafka_offsets import KafkaOffsets


def read_offsets(chain: ChainState, source_name: str) -> KafkaOffsets | None:
    """What the newest block of a source says of its topic; None where the chain has nothing that we understand."""
    state = chain.source_state(source_name)
    try:
        return KafkaOffsets.of_state(state) if state else None
    except MalformedBytesError:
        return None


def read_positions(chain: ChainState, source_name: str) -> dict[int, int]:
    """The next positions of a source's topic; none where the chain has none that we understand."""
    offsets = read_offsets(chain, source_name)
    return dict(sorted(offsets.next.items())) if offsets else {}


def counts_of(offsets: KafkaOffsets) -> dict[str, int]:
    """What became of the records of a block, for scripts."""
    return {
        "records": offsets.records,
        "duplicates": offsets.duplicates,
        "deadLetters": offsets.dead_letters,
        "derived": offsets.derived,
        "late": offsets.late,
    }
