"""What goes into a merge beside the rows, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.errors import OdfError
from odf_common.ingest.messages import Problem

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class KeyIndex(Protocol):
    """The keys of all earlier rows of a dataset, as `merge_keys` encodes them."""

    def contains(self, keys: Sequence[bytes]) -> Sequence[bool] | Mask:
        """For each key, whether an earlier row has it, whatever its operation."""
        ...


class LatestRows(Protocol):
    """The latest row of each key of a dataset, as far as it is live: appended or corrected to, not retracted."""

    def latest(self, keys: pa.Array, schema: pa.Schema) -> tuple[Mask, pa.Table]:
        """For each of these distinct keys whether its latest row is live, and the rows of those that are.

        Keys are binary, as `merge_keys` encodes them. The rows come in the order of their keys, with the columns of
        `schema`, of which those are null that a row does not have.
        """
        ...


MergeState = KeyIndex | LatestRows | pa.Table | None
"""What a strategy compares a batch with: KeyIndex for a Ledger, LatestRows for an UpsertStream, the table of all live
latest rows for a Snapshot, None for Append and ChangelogStream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a batch changes, in its final order. Records + `derived` = rows + `duplicates` + `refused`."""

    rows: pa.Table
    """Data columns, without operation; event times as the input has them, which may be null."""
    op: pa.Array
    """The operation of each row, int32."""
    source_row: Places
    """The row of the input that each row is; -1 for those taken from the state."""
    duplicates: int = 0
    """Rows of the input that change nothing."""
    derived: int = 0
    """Rows that no row of the input stands for: correct-from rows, and what a Snapshot retracts."""
    refused: list[tuple[int, Problem]] = field(default_factory=list)
    """Rows of the input that cannot be merged, and why."""


class SnapshotRefusedError(OdfError):
    """A snapshot says contradictory or incomplete things, so nothing of it can be taken; `problem` has code and reason.

    The same payload will never be accepted.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.reason)


class RefusedRowsError(OdfError):
    """Rows cannot be merged, and it is not known which records they came from; `problem` is that of the first.

    Fewer messages at a time tell which it is about: a message alone that raises this is a dead letter.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.reason)
