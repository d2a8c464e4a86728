"""What a snapshot costs against the plainest thing to compare it with: reading both and joining them in DuckDB."""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figures import seconds
from benchmarks.streaming.keyed import events
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground
from odf_common.metadata.sources import MergeStrategySnapshot
from streaming_jobs.ingest.state.row_file import RowFile, RowFileWriter
from streaming_jobs.ingest.state.snapshot_merge import merged_snapshot

ROWS = 1_000_000
ROUNDS = 5

_STRATEGY = MergeStrategySnapshot(primary_key=("id",))


def measure(ground: Ground) -> None:
    """Print the ratios for few changes and for many; both read the new rows from a Parquet file."""
    report = Report("snapshot_merge")
    folder = ground.folder / "snapshots"
    folder.mkdir()
    before = events(np.arange(ROWS), values=1.5)
    state = _state(folder / "state.arrow", before)
    pq.write_table(before, folder / "before.parquet")
    for share in (0.01, 0.5):
        after = folder / f"after-{share}.parquet"
        pq.write_table(_changed(before, share), after)
        joins, merges = [], []
        for _ in range(ROUNDS):
            joins.append(seconds(partial(_join, folder / "before.parquet", after)))
            merges.append(seconds(partial(_merge, state, after, folder / "area")))
        join, merge = statistics.median(joins), statistics.median(merges)
        name = f"{ROWS} rows, {share:.0%} changed, merge : join of both in DuckDB"
        report.figure(name, merge / join, "ratio", goal="<= 3", seconds=merge, join_seconds=join)
    report.save()


def _changed(rows: pa.Table, share: float) -> pa.Table:
    """The same rows in another order, some with another value."""
    random = np.random.default_rng(1)
    values = np.where(random.random(ROWS) < share, 2.5, 1.5)
    index = rows.column_names.index("value")
    return rows.set_column(index, "value", pa.array(values)).take(pa.array(random.permutation(ROWS)))


def _state(path: Path, rows: pa.Table) -> RowFile:
    with RowFileWriter(path, rows.schema) as file:
        file.write(rows)
        return file.finish()


def _join(before: Path, after: Path) -> None:
    columns = ("event_time", "device", "value", "ok")
    differs = " or ".join(f"a.{name} is distinct from b.{name}" for name in columns)
    with duckdb.connect() as duck:
        duck.execute(
            f"select count(*) from '{after}' a full outer join '{before}' b on a.id = b.id "
            f"where a.id is null or b.id is null or {differs}"
        ).fetchall()


def _merge(state: RowFile, after: Path, area: Path) -> None:
    area.mkdir(exist_ok=True)
    with pq.ParquetFile(after) as file:
        parts = (pa.Table.from_batches([batch]) for batch in file.iter_batches(1 << 16))
        merged = merged_snapshot(_STRATEGY, parts, state, area=area, event_time="event_time")
        assert sum(part.rows.num_rows for part in merged)
