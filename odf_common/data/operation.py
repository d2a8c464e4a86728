"""What a record does to the records before it: the operation column (ODF RFC-015)."""

from __future__ import annotations

from enum import IntEnum


class OperationType(IntEnum):
    """Values of the operation column. A correction is a pair: CORRECT_FROM directly before CORRECT_TO."""

    APPEND = 0
    RETRACT = 1
    CORRECT_FROM = 2
    CORRECT_TO = 3

    @property
    def symbol(self) -> str:
        """Two characters for people: `+A`, `-R`, `-C`, `+C`."""
        return _SYMBOLS[self]

    @property
    def removes(self) -> bool:
        """Whether the record takes back an earlier one, whose values it repeats."""
        return self in (OperationType.RETRACT, OperationType.CORRECT_FROM)


_SYMBOLS = {
    OperationType.APPEND: "+A",
    OperationType.RETRACT: "-R",
    OperationType.CORRECT_FROM: "-C",
    OperationType.CORRECT_TO: "+C",
}
