"""A dataset in memory: batches merged one after another into its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from odf_common.ingest.merge import Merged, MergeState, TableRows, latest_rows, merge, merge_keys
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
)
from tests.unit.odf_common.ingest.sources import KeysInMemory

WORDS = DatasetVocabulary()
TIME = pa.timestamp("ms", "UTC")

Row = Mapping[str, Any]


class MemoryDataset:
    """Rows with offset and operation, which only grow."""

    def __init__(self, strategy: MergeStrategy, columns: pa.Schema) -> None:
        self.strategy = strategy
        self.columns = columns
        self.rows = pa.schema([("offset", pa.int64()), ("op", pa.int32()), *columns]).empty_table()

    def push(self, rows: Iterable[Row]) -> Merged:
        """Merge one batch."""
        batch = list(rows)
        has_op = any("op" in row for row in batch) or isinstance(self.strategy, MergeStrategyChangelogStream)
        schema = pa.schema([*self.columns, *([pa.field("op", pa.int64())] if has_op else [])])
        table = pa.Table.from_pylist([dict(row) for row in batch], schema)
        merged = merge(self.strategy, table, self.state(), vocabulary=WORDS)
        assert len(batch) + merged.derived == merged.rows.num_rows + merged.duplicates + len(merged.refused)
        assert merged.rows.num_rows == len(merged.op) == len(merged.source_row)
        offsets = pa.array(range(self.rows.num_rows, self.rows.num_rows + merged.rows.num_rows), pa.int64())
        table = pa.Table.from_arrays([offsets, merged.op, *merged.rows.columns], schema=self.rows.schema)
        self.rows = pa.concat_tables([self.rows, table])
        return merged

    def state(self) -> MergeState:
        """What the next batch is compared with."""
        if isinstance(self.strategy, MergeStrategyAppend | MergeStrategyChangelogStream):
            return None
        if isinstance(self.strategy, MergeStrategyLedger):
            return KeysInMemory(merge_keys(self.rows, self.strategy.primary_key).drop_null().to_pylist())
        live = self.latest()
        return live if isinstance(self.strategy, MergeStrategySnapshot) else TableRows(live, self.primary_key)

    @property
    def primary_key(self) -> Sequence[str]:
        assert not isinstance(self.strategy, MergeStrategyAppend)
        return self.strategy.primary_key

    def latest(self) -> pa.Table:
        """The live latest rows."""
        return latest_rows(self.rows, self.primary_key, WORDS)

    def folded(self) -> Counter[tuple[Any, ...]]:
        """What is left when each row does what its operation says; a row that takes back another needs that one."""
        left: Counter[tuple[Any, ...]] = Counter()
        for row in self.rows.to_pylist():
            values = tuple(row[name] for name in self.columns.names)
            if row["op"] in (0, 3):
                left[values] += 1
            else:
                assert left[values] > 0, f"{row} takes back what is not there"
                left[values] -= 1
        return +left

    def shown(self, *columns: str) -> list[tuple[Any, ...]]:
        """Operations and these columns of all rows."""
        return [tuple(row[name] for name in ("op", *columns)) for row in self.rows.to_pylist()]
