from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.ingest.merge import TableRows, merge_keys
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from tests.unit.odf_common.ingest.datasets import TIME, MemoryDataset

Row = dict[str, Any]

COLUMNS = pa.schema([("event_time", TIME), ("a", pa.string()), ("b", pa.int64()), ("value", pa.int64())])
KEY = ("a", "b")
START = datetime(2020, 1, 1, tzinfo=UTC)

keys = st.tuples(st.sampled_from("xyz"), st.integers(0, 2))
times = st.integers(0, 3).map(lambda hours: START + timedelta(hours=hours))
values = st.none() | st.integers(0, 2)


@st.composite
def records(draw: st.DrawFn, *, operations: st.SearchStrategy[int] | None = None) -> Row:
    a, b = draw(keys)
    row = {"event_time": draw(times), "a": a, "b": b, "value": draw(values)}
    return row if operations is None else row | {"op": draw(operations)}


upserts = st.lists(records(operations=st.sampled_from([0, 0, 0, 1, 3])), max_size=12)
snapshots = st.lists(records(), max_size=9, unique_by=lambda row: (row["a"], row["b"]))


def key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def dataset(strategy: MergeStrategy) -> MemoryDataset:
    return MemoryDataset(strategy, COLUMNS)


def cut(draw: st.DataObject, rows: list[Row]) -> list[list[Row]]:
    ends = sorted(draw.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    return [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]


def in_pieces(strategy: MergeStrategy, pieces: list[list[Row]]) -> MemoryDataset:
    made = dataset(strategy)
    for piece in pieces:
        made.push(piece)
    return made


def content(of: MemoryDataset) -> Counter[tuple[Any, ...]]:
    """All rows, whatever their order."""
    return Counter(of.shown(*COLUMNS.names))


def as_tuple(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS.names)


def is_sorted_with_pairs(rows: list[tuple[Any, ...]]) -> bool:
    """By key, then operation; each correct-to directly behind its correct-from."""
    order = [(row[2], row[3], row[0]) for row in rows]
    pairs = all(order[place - 1] == (row[2], row[3], 2) if row[0] == 3 else True for place, row in enumerate(rows))
    return order == sorted(order) and pairs


@settings(max_examples=40)
@given(st.lists(upserts, max_size=4))
def test_upserts_fold_to_the_last_value_of_each_key(batches: list[list[Row]]) -> None:
    made, expected = dataset(MergeStrategyUpsertStream(primary_key=KEY)), {}
    for batch in batches:
        before = made.rows.num_rows
        made.push(batch)
        assert is_sorted_with_pairs(made.shown(*COLUMNS.names)[before:])
        for row in {key(row): row for row in batch}.values():
            expected[key(row)] = None if row["op"] == 1 else as_tuple(row)
        assert made.folded() == Counter(row for row in expected.values() if row)
        assert Counter(map(as_tuple, made.latest().to_pylist())) == made.folded()


@settings(max_examples=40)
@given(st.lists(snapshots, max_size=4))
def test_snapshots_fold_to_the_last_of_them_and_once_more_is_nothing(batches: list[list[Row]]) -> None:
    made = dataset(MergeStrategySnapshot(primary_key=KEY))
    for batch in batches:
        before = made.rows.num_rows
        made.push(batch)
        assert is_sorted_with_pairs(made.shown(*COLUMNS.names)[before:])
        assert made.folded() == Counter(map(as_tuple, batch))
        assert made.push(batch[::-1]).rows.num_rows == 0


@settings(max_examples=40)
@given(st.lists(snapshots, max_size=3))
def test_snapshots_do_what_upserts_and_deletes_of_the_rest_do(batches: list[list[Row]]) -> None:
    one = dataset(MergeStrategySnapshot(primary_key=KEY))
    other = dataset(MergeStrategyUpsertStream(primary_key=KEY))
    for batch in batches:
        gone = [row | {"op": 1} for row in other.latest().to_pylist() if key(row) not in {*map(key, batch)}]
        one.push(batch)
        other.push([row | {"op": 0} for row in batch] + gone)
        assert one.rows.equals(other.rows)


@settings(max_examples=40)
@given(st.lists(records(), max_size=12, unique_by=key), upserts, st.data())
def test_upserts_of_distinct_keys_give_the_same_rows_however_they_are_cut(
    batch: list[Row], before: list[Row], data: st.DataObject
) -> None:
    strategy = MergeStrategyUpsertStream(primary_key=KEY)
    batch = [row | {"op": data.draw(st.sampled_from([0, 1]))} for row in batch]
    whole = in_pieces(strategy, [before, batch])
    parts = in_pieces(strategy, [before, *cut(data, batch)])
    assert content(parts) == content(whole)
    assert parts.folded() == whole.folded()


@settings(max_examples=40)
@given(upserts, st.data())
def test_any_cut_of_upserts_leads_to_the_same_state(batch: list[Row], data: st.DataObject) -> None:
    strategy = MergeStrategyUpsertStream(primary_key=KEY)
    whole, parts = in_pieces(strategy, [batch]), in_pieces(strategy, cut(data, batch))
    assert whole.folded() == parts.folded()
    assert Counter(map(as_tuple, whole.latest().to_pylist())) == Counter(map(as_tuple, parts.latest().to_pylist()))


@given(st.lists(records(operations=st.integers(0, 3)), max_size=12), st.data())
def test_a_changelog_has_the_rows_of_its_batches_however_they_are_cut(batch: list[Row], data: st.DataObject) -> None:
    strategy = MergeStrategyChangelogStream(primary_key=KEY)
    whole, parts = in_pieces(strategy, [batch]), in_pieces(strategy, cut(data, batch))
    assert content(whole) == content(parts) == Counter((row["op"], *as_tuple(row)) for row in batch)
    order = [(row[2], row[3], row[0]) for row in whole.shown(*COLUMNS.names)]
    assert order == sorted(order)


@given(st.lists(records(), max_size=12), st.data())
def test_appended_rows_are_the_same_however_they_are_cut(batch: list[Row], data: st.DataObject) -> None:
    whole, parts = (in_pieces(MergeStrategyAppend(), pieces) for pieces in ([batch], cut(data, batch)))
    assert content(whole) == content(parts) == Counter((0, *as_tuple(row)) for row in batch)
    found = [row["event_time"] for row in whole.rows.to_pylist()]
    assert found == sorted(found)
    in_order = sorted(batch, key=lambda row: row["event_time"])
    assert in_pieces(MergeStrategyAppend(), cut(data, in_order)).rows.to_pylist() == whole.rows.to_pylist()


@given(st.lists(records(), max_size=12, unique_by=key), st.data())
def test_a_ledger_of_distinct_keys_is_the_same_however_it_is_cut_and_repeated(
    batch: list[Row], data: st.DataObject
) -> None:
    strategy = MergeStrategyLedger(primary_key=KEY)
    whole, parts = in_pieces(strategy, [batch]), in_pieces(strategy, cut(data, batch))
    assert content(whole) == content(parts) == Counter((0, *as_tuple(row)) for row in batch)
    assert parts.push(batch).duplicates == len(batch)


@given(snapshots, st.lists(keys, unique=True))
def test_rows_in_memory_are_found_by_their_keys(rows: list[Row], wanted: list[tuple[str, int]]) -> None:
    table = pa.Table.from_pylist(rows, COLUMNS)
    known = {key(row): row for row in rows}
    encoded = merge_keys(pa.table({"a": [a for a, _ in wanted], "b": [b for _, b in wanted]}, schema=_KEYS), KEY)
    state = TableRows(table, KEY)
    found, latest = state.latest(encoded, COLUMNS)
    assert found.tolist() == state.contains(encoded.to_pylist()).tolist() == [one in known for one in wanted]
    assert latest.to_pylist() == [known[one] for one in wanted if one in known]


_KEYS = pa.schema([("a", pa.string()), ("b", pa.int64())])
