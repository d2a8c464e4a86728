"""A new snapshot against the state, within bounded memory: the same as `odf_common.ingest.merge` makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.data.operation import OperationType
from odf_common.data.system_columns import OPERATION_TYPE
from odf_common.ingest.errors import IncompatibleSchemaError
from odf_common.ingest.merge import Merged, SnapshotRefusedError, merge_keys
from odf_common.ingest.messages import Code, Problem
from odf_common.metadata.sources import MergeStrategySnapshot
from streaming_jobs.ingest.state.duck import (
    MEMORY_MIB,
    Differences,
    Side,
    differences,
    distinct_keys,
    first_repeated,
    opened_duck,
)
from streaming_jobs.ingest.state.row_file import RowFile, RowFiles, RowFileWriter

Places = npt.NDArray[np.int64]

_SHOWN_CHARACTERS = 80


def merged_snapshot(
    strategy: MergeStrategySnapshot,
    parts: Iterable[pa.Table],
    state: RowFile | None,
    *,
    area: Path,
    event_time: str,
    memory_mib: int = MEMORY_MIB,
) -> Iterator[Merged]:
    """What the rows of a snapshot change in the state; see `SnapshotState.merge`. `area` is an empty folder."""
    new = _spooled(strategy, parts, area)
    if not new.schema.names:
        return
    old = RowFiles([] if state is None else [state], new.schema)
    compared = strategy.compare_columns or [name for name in new.schema.names if name not in strategy.primary_key]
    new_side = Side(new.batches, new.schema, strategy.primary_key, compared)
    old_side = Side(old.batches, new.schema, strategy.primary_key, compared)
    with opened_duck(area, memory_mib) as duck:
        _check_keys(duck, new, strategy)
        found = differences(duck, new_side, old_side, optional=event_time)
        yield from _merged(new, old, found)


def _spooled(strategy: MergeStrategySnapshot, parts: Iterable[pa.Table], area: Path) -> RowFiles:
    """The rows on the disk, as they are looked at in several orders; a file for each schema that parts have."""
    files: list[RowFile] = []
    nulls = _NullKeys(strategy)
    with ExitStack() as stack:
        writer: RowFileWriter | None = None
        for part in parts:
            rows = part.replace_schema_metadata(None)
            nulls.look(rows)
            if writer is None or not writer.schema.equals(rows.schema):
                files += [] if writer is None else [writer.finish()]
                writer = stack.enter_context(RowFileWriter(area / f"new-{len(files)}.arrow", rows.schema))
            writer.write(rows)
        files += [] if writer is None else [writer.finish()]
    nulls.check()
    try:
        schema = pa.unify_schemas([file.schema for file in files]) if files else pa.schema([])
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise IncompatibleSchemaError(f"the snapshot has columns of more than one type: {error}") from error
    return RowFiles(files, pa.schema([column.with_nullable(True) for column in schema]))


class _NullKeys:
    """Whether all rows have keys."""

    def __init__(self, strategy: MergeStrategySnapshot) -> None:
        self._primary_key = strategy.primary_key
        self._rows = self._count = 0
        self._problem: Problem | None = None

    def look(self, rows: pa.Table) -> None:
        """Take note of the next rows."""
        if any(rows[name].null_count for name in self._primary_key):
            places = np.flatnonzero(merge_keys(rows, self._primary_key).is_null().to_numpy(zero_copy_only=False))
            if self._problem is None:
                place = int(places[0])
                name = next(name for name in self._primary_key if not rows[name][place].is_valid)
                self._problem = Problem(
                    Code.NULL_KEY,
                    f"record {self._rows + place + 1} of the snapshot: column {name!r} of the primary key is null",
                )
            self._count += len(places)
        self._rows += rows.num_rows

    def check(self) -> None:
        """Raise SnapshotRefusedError unless they do."""
        if self._problem is None:
            return
        others = f" (and {self._count - 1} more records have no key)" if self._count > 1 else ""
        raise SnapshotRefusedError(Problem(self._problem.code, self._problem.reason + others))


def _check_keys(duck: duckdb.DuckDBPyConnection, new: RowFiles, strategy: MergeStrategySnapshot) -> None:
    """Raise SnapshotRefusedError unless each row has a key of its own."""
    side = Side(new.batches, new.schema, strategy.primary_key)
    if distinct_keys(duck, side) == new.num_rows:
        return
    first, second, repeats = first_repeated(duck, side)
    row = new.take(np.array([second]))
    key = ", ".join(f"{name} = {_shown(row[name][0].as_py())}" for name in strategy.primary_key)
    others = f"; {repeats - 1} more records repeat a key" if repeats > 1 else ""
    raise SnapshotRefusedError(
        Problem(
            Code.DUPLICATE_KEYS,
            f"records {first + 1} and {second + 1} of the snapshot have the same key, {key}{others}: "
            "a snapshot has one record for each key",
        )
    )


def _merged(new: RowFiles, old: RowFiles, found: Differences) -> Iterator[Merged]:
    duplicates = new.num_rows - found.only_new - found.changed
    derived = found.only_old + found.changed
    for batch in found.pairs:
        changes = _Pairs.of(batch)
        yield Merged(
            rows=changes.rows(new, old),
            op=changes.op,
            source_row=changes.source_row,
            duplicates=duplicates,
            derived=derived,
        )
        duplicates = derived = 0
    if duplicates:
        empty = np.empty(0, np.int64)
        yield Merged(
            rows=new.schema.empty_table(), op=pa.array([], OPERATION_TYPE), source_row=empty, duplicates=duplicates
        )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Changes of some keys, a row of the new or of the old side each; a correction is two, one behind the other."""

    op: pa.Array
    source_row: Places
    old_row: Places
    """-1 for those of the new side."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _Pairs:
        """From the numbers of rows, with a null on one side, or none."""
        new, old = (column.fill_null(-1).to_numpy() for column in batch.columns)
        is_pair = (new >= 0) & (old >= 0)
        pairs = np.repeat(np.arange(len(new)), 1 + is_pair)
        is_second = np.zeros(len(pairs), np.bool_)
        is_second[1:] = pairs[1:] == pairs[:-1]
        is_old = (old[pairs] >= 0) & ~is_second
        op = np.where(
            is_old,
            np.where(is_pair[pairs], OperationType.CORRECT_FROM, OperationType.RETRACT),
            np.where(is_second, OperationType.CORRECT_TO, OperationType.APPEND),
        )
        return cls(
            pa.array(op, OPERATION_TYPE),
            np.where(is_old, -1, new[pairs]),
            np.where(is_old, old[pairs], -1),
        )

    def rows(self, new: RowFiles, old: RowFiles) -> pa.Table:
        """The rows themselves."""
        is_old = self.old_row >= 0
        both = pa.concat_tables([new.take(self.source_row[~is_old]), old.take(self.old_row[is_old])])
        back = np.empty(len(is_old), np.int64)
        back[~is_old] = np.arange(len(is_old) - is_old.sum())
        back[is_old] = np.arange(len(is_old) - is_old.sum(), len(is_old))
        return both.combine_chunks().take(pa.array(back))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
