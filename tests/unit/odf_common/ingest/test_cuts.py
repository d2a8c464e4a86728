"""Where batches end: any cut of the same messages gives the same rows, and equal cuts the same logical hashes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from odf_common.data.slice_writer import SliceWriter
from odf_common.identity.multihash import Multihash
from odf_common.ingest.batch import make_batch
from odf_common.ingest.merge import MergeState, TableRows, latest_rows
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategyUpsertStream,
    ReadStepNdJson,
)
from odf_common.timestamp import Timestamp
from tests.unit.odf_common.ingest.sources import messages

KEY = ("id",)
CUTS = (1, 7, 100)
STRATEGIES: tuple[MergeStrategy, ...] = (
    MergeStrategyAppend(),
    MergeStrategyLedger(primary_key=KEY),
    MergeStrategyChangelogStream(primary_key=KEY),
    MergeStrategyUpsertStream(primary_key=KEY),
)
VOCABULARY = DatasetVocabulary()
START = Timestamp.parse("2026-01-31T12:00:00Z")


def input_of(strategy: MergeStrategy) -> list[bytes]:
    """200 messages in which a key comes again after 100 others only: no batch replaces anything within itself."""
    random = Random(5)
    operations = strategy.kind in ("ChangelogStream", "UpsertStream")
    records: list[dict[str, Any]] = [
        {"event_time": random.choice(("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z")), "id": number % 100}
        | {"value": random.choice("abc")}
        | ({"op": random.choice((0, 1))} if operations else {})
        for number in range(200)
    ]
    return [json.dumps(record).encode() for record in records]


def slices_of(strategy: MergeStrategy, values: Sequence[bytes], cut: int) -> list[pa.Table]:
    """The rows of each batch when they have so many messages."""
    operation = ("op INT",) if strategy.kind in ("ChangelogStream", "UpsertStream") else ()
    read = ReadStepNdJson(ddl_schema=("event_time TIMESTAMP", *operation, "id BIGINT", "value STRING"))
    plan = SourcePlan.of(AddPushSource(source_name="default", read=read, merge=strategy), VOCABULARY, None)
    found: list[pa.Table] = []
    offset = 0
    for number, start in enumerate(range(0, len(values), cut)):
        batch = make_batch(
            plan,
            messages(*values[start : start + cut]),
            next_offset=offset,
            system_time=START.plus_seconds(number),
            state=state_of(strategy, found),
        )
        if batch.data_schema is not None:
            plan = plan.evolved(batch.data_schema)
        if batch.rows is not None:
            found.append(batch.rows)
            offset += batch.rows.num_rows
    return found


def state_of(strategy: MergeStrategy, slices: Sequence[pa.Table]) -> MergeState:
    if not slices:
        names = ("offset", "op", "event_time", "id", "value")
        types = (pa.int64(), pa.int32(), pa.timestamp("ms", "UTC"), pa.int64(), pa.string())
        slices = [pa.schema(list(zip(names, types, strict=True))).empty_table()]
    before = pa.concat_tables(slices)
    if isinstance(strategy, MergeStrategyLedger):
        return TableRows(before, KEY)
    if isinstance(strategy, MergeStrategyUpsertStream):
        return TableRows(latest_rows(before, KEY, VOCABULARY), KEY)
    return None


def rests(slices: Sequence[pa.Table]) -> list[tuple[Any, ...]]:
    """All rows without what says where and when they were written, in an order of their own."""
    table = pa.concat_tables(slices).drop_columns(["offset", "system_time"])
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def logical_hashes(slices: Sequence[pa.Table], folder: Path) -> list[Multihash]:
    hashes = []
    for rows in slices:
        with SliceWriter(folder / "slice", rows.schema) as writer:
            for batch in rows.to_batches():
                writer.write(batch)
        hashes.append(writer.close().to_data_slice().logical_hash)
        (folder / "slice").unlink()
    return hashes


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.kind)
def test_any_cut_gives_the_same_rows(strategy: MergeStrategy) -> None:
    one, *others = (rests(slices_of(strategy, input_of(strategy), cut)) for cut in CUTS)
    assert one
    assert all(other == one for other in others)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.kind)
def test_equal_cuts_give_equal_logical_hashes(strategy: MergeStrategy, cut: int, tmp_path: Path) -> None:
    first, second = (logical_hashes(slices_of(strategy, input_of(strategy), cut), tmp_path) for _ in range(2))
    assert first
    assert first == second
