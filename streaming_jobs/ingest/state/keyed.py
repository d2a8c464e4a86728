"""What the merges of one dataset compare its new rows with. All of it is derived from the chain and can be deleted.

States hold what is committed, with the slice up to which they know the rows, written together; what waits for its
commit is kept in memory or in nameless files. So a crash or a rejected batch leaves nothing wrong behind, and what is
missing is read again from the slices.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from streaming_jobs.ingest.state.ledger import KnownKeys
from streaming_jobs.ingest.state.snapshot import SnapshotState
from streaming_jobs.ingest.state.upsert import LiveRows

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.identity.did import DatasetId
    from odf_common.ingest.source import SourcePlan
    from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
    from odf_common.storage.ports import ObjectStore
    from streaming_jobs.ingest.state.progress import OnProgress


class _State(Protocol):
    """What all kinds of state have in common."""

    def propose(self, rows: pa.Table, proposed: DataSlice) -> None: ...

    def withdraw(self, offset: int) -> None: ...

    def committed(self, next_offset: int) -> None: ...

    def catch_up(
        self,
        chain: MetadataChain,
        objects: ObjectStore,
        vocabulary: DatasetVocabulary,
        on_progress: OnProgress | None,
    ) -> None: ...

    def close(self) -> None: ...


_Name = tuple[str, tuple[str, ...]]
"""The kind of a strategy, and its primary key."""


class KeyedStates:
    """All states of one dataset: one for each strategy and primary key of its sources. Used by one thread."""

    def __init__(self, folder: Path, strategies: Iterable[MergeStrategy]) -> None:
        self._states: dict[_Name, _State] = {}
        self._in_flight: list[DataSlice] = []
        try:
            for strategy in strategies:
                name = _name(strategy)
                if name is not None and name not in self._states:
                    self._states[name] = _opened(folder, name)
        except BaseException:
            self.close()  # they lock their files
            raise

    @classmethod
    def for_plans(cls, folder: Path, dataset_id: DatasetId, plans: Iterable[SourcePlan]) -> KeyedStates:
        """What these sources need, not yet brought up to date."""
        return cls(folder / dataset_id.multibase, [plan.source.merge for plan in plans])

    def catch_up(
        self,
        chain: MetadataChain,
        objects: ObjectStore,
        vocabulary: DatasetVocabulary,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Read what the chain has and a state has not; anew from the beginning where it is not of this chain."""
        for state in self._states.values():
            state.catch_up(chain, objects, vocabulary, on_progress)

    def for_source(self, plan: SourcePlan) -> KnownKeys | LiveRows | SnapshotState | None:
        """What a source's records are compared with; None where its strategy needs nothing."""
        return self.for_strategy(plan.source.merge)

    def for_strategy(self, strategy: MergeStrategy) -> KnownKeys | LiveRows | SnapshotState | None:
        """The same by the strategy."""
        name = _name(strategy)
        if name is None:
            return None
        state = self._states[name]
        assert isinstance(state, KnownKeys | LiveRows | SnapshotState)
        return state

    def is_ready_for(self, plan: SourcePlan) -> bool:
        """Whether the source's next batch can be merged now.

        A snapshot is compared with what is committed: it has to wait until nothing of the dataset is in flight.
        """
        return not (isinstance(plan.source.merge, MergeStrategySnapshot) and self._in_flight)

    def propose(self, rows: pa.Table, proposed: DataSlice) -> None:
        """Count the rows of a slice in before they are committed."""
        self._in_flight.append(proposed)
        for state in self._states.values():
            state.propose(rows, proposed)

    def withdraw(self, offset: int) -> None:
        """Forget what was proposed from an offset on: it will not be committed after all."""
        self._in_flight = [each for each in self._in_flight if each.offset_interval.start < offset]
        for state in self._states.values():
            state.withdraw(offset)

    def committed(self, next_offset: int) -> None:
        """Keep what slices brought that end before this offset."""
        self._in_flight = [each for each in self._in_flight if each.offset_interval.end >= next_offset]
        for state in self._states.values():
            state.committed(next_offset)

    def close(self) -> None:
        """Let go of all files."""
        for state in self._states.values():
            state.close()


def _name(strategy: MergeStrategy) -> _Name | None:
    match strategy:
        case MergeStrategyAppend() | MergeStrategyChangelogStream():
            return None
        case MergeStrategyLedger() | MergeStrategySnapshot() | MergeStrategyUpsertStream():
            return strategy.kind, tuple(strategy.primary_key)


def _opened(folder: Path, name: _Name) -> _State:
    kind, primary_key = name
    digest = hashlib.sha256(json.dumps(primary_key).encode()).hexdigest()[:16]
    match kind:
        case "Ledger":
            return KnownKeys(folder / digest, primary_key)
        case "UpsertStream":
            return LiveRows(folder / f"upsert-{digest}", primary_key)
    return SnapshotState(folder / f"snapshot-{digest}", primary_key)
