"""How much may be under way at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from services.gateway.errors import TooBusyError


@dataclass(slots=True)
class Budget:
    """Payloads, and the memory that they take. Used in the event loop only."""

    max_count: int
    max_size: int
    count: int = 0
    size: int = 0

    @contextmanager
    def payload(self) -> Iterator[Share]:
        """Room for one payload, given back at the end of the block; TooBusyError if there is none."""
        if self.count >= self.max_count:
            raise TooBusyError(f"{self.count} payloads are under way already: nothing of this one was published")
        share = Share(self)
        self.count += 1
        try:
            yield share
        finally:
            self.count -= 1
            self.size -= share.size


@dataclass(slots=True)
class Share:
    """What one payload takes of the budget."""

    budget: Budget
    size: int = 0

    def grow(self, size: int) -> None:
        """Take more; TooBusyError if there is no more."""
        if self.budget.size + size > self.budget.max_size:
            raise TooBusyError("too many bytes are under way already: nothing of this payload was published")
        self.budget.size += size
        self.size += size
