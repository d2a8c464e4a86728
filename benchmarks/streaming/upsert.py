"""Whether a batch of an UpsertStream or a ChangelogStream costs the same with many known keys as with few."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pyarrow as pa

from benchmarks.streaming.keyed import KeyedDataset, events
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground
from odf_common.metadata.sources import MergeStrategy, MergeStrategyChangelogStream, MergeStrategyUpsertStream

FEW, MANY = 100_000, 5_000_000
ROWS = 10_000
KNOWN_ROWS = 5_000  # of them
BATCHES = 40
WARM_UP = 5
AT_ONCE = 1_000_000

_KEY = ("id",)


def measure(ground: Ground) -> None:
    """Print the ratios, with batches of both in turn, and what a batch of very many known keys takes."""
    report = Report("upsert")
    for strategy in (MergeStrategyUpsertStream(primary_key=_KEY), MergeStrategyChangelogStream(primary_key=_KEY)):
        _flat(ground, report, strategy)
    _at_once(ground, report)
    report.save()


def _flat(ground: Ground, report: Report, strategy: MergeStrategy) -> None:
    datasets = {keys: KeyedDataset(ground.folder / f"{strategy.kind}-{keys}", strategy, keys) for keys in (FEW, MANY)}
    taken: dict[int, list[float]] = {keys: [] for keys in datasets}
    for number in range(WARM_UP + BATCHES):
        for keys, dataset in datasets.items():
            taken[keys].append(_batch(dataset, number))
    few, many = (statistics.median(values[WARM_UP:]) for values in taken.values())
    name = f"{strategy.kind}, a batch of {ROWS} rows, {MANY} known keys : {FEW}"
    report.figure(name, many / few, "ratio", goal="<= 1.3", seconds=many, seconds_with_few=few)
    for dataset in datasets.values():
        dataset.states.close()


def _batch(dataset: KeyedDataset, number: int) -> float:
    """Seconds to merge a batch, to note what it changes and, once it is committed, to keep it."""
    known = (np.arange(KNOWN_ROWS) * (dataset.keys // KNOWN_ROWS) + number) % dataset.keys
    new = dataset.keys + number * (ROWS - KNOWN_ROWS) + np.arange(ROWS - KNOWN_ROWS)
    rows = events(np.concatenate([known, new]), values=2.0 + number)
    if isinstance(dataset.strategy, MergeStrategyChangelogStream):
        rows = rows.append_column("op", pa.array(np.zeros(ROWS, np.int32)))
    began = time.perf_counter()
    merged = dataset.merge(rows)
    taken = time.perf_counter() - began
    return taken + sum(dataset.take(merged.rows, merged.op))


def _at_once(ground: Ground, report: Report) -> None:
    dataset = KeyedDataset(ground.folder / "at-once", MergeStrategyUpsertStream(primary_key=_KEY), AT_ONCE)
    rows = events(np.random.default_rng(1).permutation(AT_ONCE), values=7.0)
    began = time.perf_counter()
    merged = dataset.merge(rows)
    seconds = time.perf_counter() - began
    assert merged.rows.num_rows == 2 * AT_ONCE
    proposed, committed = dataset.take(merged.rows, merged.op)
    report.figure(
        f"{AT_ONCE} known keys in one batch", seconds, "s", goal="<= 5.6", proposed=proposed, committed=committed
    )
    dataset.states.close()
