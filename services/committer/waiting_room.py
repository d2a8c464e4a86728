"""Where batches wait whose predecessor has not come yet. Bounded, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from odf_common.identity.did import DatasetId
from odf_common.messages.completion import Completion


@dataclass(frozen=True, slots=True)
class Received:
    """A completion as it came: where its message lies, how large it is, and when it came (monotonic seconds)."""

    completion: Completion
    partition: int
    position: int
    size: int  # bytes
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomLimits:
    """How many may wait, how large they may be together, and for how long."""

    per_dataset: int = 200
    total: int = 10_000
    total_size: int = 64 << 20  # bytes
    seconds: float = 30.0


class WaitingRoom:
    """Completions that came early, by dataset."""

    def __init__(self, limits: RoomLimits) -> None:
        self._limits = limits
        self._waiting: dict[DatasetId, tuple[Received, ...]] = {}
        self._count = 0
        self._size = 0

    def __len__(self) -> int:
        return self._count

    def datasets(self) -> Sequence[DatasetId]:
        """The datasets for which somebody waits."""
        return list(self._waiting)

    def of(self, dataset_id: DatasetId) -> tuple[Received, ...]:
        """Who waits for a dataset, in the order of arrival."""
        return self._waiting.get(dataset_id, ())

    def seat(self, dataset_id: DatasetId, early: Iterable[Received], *, now: float) -> list[Received]:
        """Let exactly these wait for a dataset; returns those who may not: too long here, twice here, or no room."""
        self._leave(dataset_id)
        seated: dict[str, Received] = {}
        refused = []
        for each in sorted(early, key=lambda each: each.at):
            if each.completion.id in seated:
                continue  # the same proposal once more: one answer is enough
            if now - each.at >= self._limits.seconds or not self._has_room(len(seated), each):
                refused.append(each)
                continue
            seated[each.completion.id] = each
            self._count += 1
            self._size += each.size
        if seated:
            self._waiting[dataset_id] = tuple(seated.values())
        return refused

    def first_position(self, partition: int) -> int | None:
        """The oldest message of a partition that waits: what comes behind it may come again after a restart."""
        return min(
            (each.position for room in self._waiting.values() for each in room if each.partition == partition),
            default=None,
        )

    def _leave(self, dataset_id: DatasetId) -> None:
        left = self._waiting.pop(dataset_id, ())
        self._count -= len(left)
        self._size -= sum(each.size for each in left)

    def _has_room(self, seated: int, each: Received) -> bool:
        return (
            seated < self._limits.per_dataset
            and self._count < self._limits.total
            and self._size + each.size <= self._limits.total_size
        )
