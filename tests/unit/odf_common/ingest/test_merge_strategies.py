from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odf_common.ingest.errors import BadInputSchemaError
from odf_common.ingest.merge import SnapshotRefusedError, TableRows, latest_rows, merge
from odf_common.ingest.messages import Code
from odf_common.metadata.sources import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from tests.unit.odf_common.ingest.datasets import TIME, WORDS, MemoryDataset

COLUMNS = pa.schema([("event_time", TIME), ("city", pa.string()), ("population", pa.int64())])
SNAPSHOT = MergeStrategySnapshot(primary_key=("city",))
UPSERT = MergeStrategyUpsertStream(primary_key=("city",))
CHANGELOG = MergeStrategyChangelogStream(primary_key=("city",))
A, R, CF, CT = range(4)


def at(day: int) -> datetime:
    return datetime(2000, 1, day, 12, tzinfo=UTC)


def city(name: str | None, population: int | None, day: int | None = None, **more: Any) -> dict[str, Any]:
    return {"event_time": None if day is None else at(day), "city": name, "population": population, **more}


def dataset(strategy: Any, *batches: list[dict[str, Any]], columns: pa.Schema = COLUMNS) -> MemoryDataset:
    made = MemoryDataset(strategy, columns)
    for batch in batches:
        made.push(batch)
    return made


def last(of: MemoryDataset, batch: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    before = of.rows.num_rows
    of.push(batch)
    return of.shown("city", "population")[before:]


def test_append_takes_all_in_the_order_of_event_time_nulls_first() -> None:
    of = dataset(MergeStrategyAppend(), [city("c", 1, 3), city("n", 2), city("a", 3, 1), city("b", 4, 1), city("n", 2)])
    assert of.shown("city", "population") == [(A, "n", 2), (A, "n", 2), (A, "a", 3), (A, "b", 4), (A, "c", 1)]


def test_a_ledger_takes_what_has_a_new_key_whatever_else_it_says() -> None:
    of = dataset(MergeStrategyLedger(primary_key=("city",)), [city("b", 1, 2), city("a", 1, 1), city("a", 2, 1)])
    assert of.shown("city", "population") == [(A, "a", 1), (A, "a", 2), (A, "b", 1)]
    assert last(of, [city("a", 9, 9), city("c", 1, 1), city(None, 1, 1)]) == [(A, "c", 1), (A, None, 1)]
    assert last(of, [city(None, 1, 1)]) == [(A, None, 1)]


def test_snapshots_become_retractions_and_corrections() -> None:
    """The worked example of the specification."""
    first = [city("C", 3000, 1), city("A", 1000, 1), city("D", 4000, 1), city("B", 2000, 1)]
    of = dataset(SNAPSHOT, first)
    assert of.shown("city", "population") == [(A, "A", 1000), (A, "B", 2000), (A, "C", 3000), (A, "D", 4000)]
    merged = of.push([city("C", 3000, 1), city("B", 4000, 2), city("D", 5000, 2)])
    assert of.shown("city", "population", "event_time")[4:] == [
        (R, "A", 1000, at(1)),
        (CF, "B", 2000, at(1)),
        (CT, "B", 4000, at(2)),
        (CF, "D", 4000, at(1)),
        (CT, "D", 5000, at(2)),
    ]
    assert (merged.duplicates, merged.derived) == (1, 3)
    assert merged.source_row.tolist() == [-1, -1, 1, -1, 2]


def test_the_same_snapshot_again_changes_nothing() -> None:
    snapshot = [city("a", 1, 1), city("b", None, 1)]
    of = dataset(SNAPSHOT, snapshot)
    assert of.push(snapshot).duplicates == 2
    assert of.rows.num_rows == 2


def test_an_empty_snapshot_retracts_everything_and_a_key_may_come_back() -> None:
    of = dataset(SNAPSHOT, [city("a", 1, 1), city("b", 2, 1)])
    assert last(of, []) == [(R, "a", 1), (R, "b", 2)]
    assert last(of, [city("a", 1, 1)]) == [(A, "a", 1)]


def test_null_is_a_value_like_others_and_equals_itself() -> None:
    of = dataset(SNAPSHOT, [city("a", None, 1), city("b", 2, 1), city("c", None, 1)])
    assert last(of, [city("a", None, 1), city("b", None, 1), city("c", 3, 1)]) == [
        (CF, "b", 2),
        (CT, "b", None),
        (CF, "c", None),
        (CT, "c", 3),
    ]


@pytest.mark.parametrize("strategy", [SNAPSHOT, UPSERT])
def test_an_event_time_that_is_missing_is_no_change_and_another_one_is(strategy: Any) -> None:
    of = dataset(strategy, [city("a", 1, 1)])
    assert last(of, [city("a", 1)]) == []
    assert last(of, [city("a", 1, 2)]) == [(CF, "a", 1), (CT, "a", 1)]
    assert of.shown("event_time")[1:] == [(CF, at(1)), (CT, at(2))]


def test_only_compared_columns_make_a_change() -> None:
    columns = pa.schema([*COLUMNS, ("note", pa.string())])
    strategy = MergeStrategySnapshot(primary_key=("city",), compare_columns=("population",))
    of = dataset(strategy, [city("a", 1, 1, note="x")], columns=columns)
    assert last(of, [city("a", 1, 2, note="y")]) == []
    assert last(of, [city("a", 2, 2, note="y")]) == [(CF, "a", 1), (CT, "a", 2)]
    assert of.shown("note")[1:] == [(CF, "x"), (CT, "y")]
    times = MergeStrategySnapshot(primary_key=("city",), compare_columns=("event_time",))
    of = dataset(times, [city("a", 1, 1)])
    assert last(of, [city("a", 2)]) == []
    assert last(of, [city("a", 2, 2)]) == [(CF, "a", 1), (CT, "a", 2)]


def test_keys_may_be_all_there_is() -> None:
    columns = pa.schema([("event_time", TIME), ("city", pa.string())])
    of = dataset(SNAPSHOT, [{"city": "a"}], columns=columns)
    assert of.push([{"city": "a"}]).duplicates == 1


@pytest.mark.parametrize(
    ("batch", "code", "reason"),
    [
        (
            [city("b", 1), city("a", 1), city("b", 2), city("a", 2)],
            Code.DUPLICATE_KEYS,
            "records 1 and 3 of the snapshot have the same key, city = 'b'; 1 more records repeat a key",
        ),
        ([city("a", 1), city("a", 1)], Code.DUPLICATE_KEYS, "records 1 and 2"),
        ([city("a", 1), city(None, 1)], Code.NULL_KEY, "record 2 of the snapshot: column 'city'"),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_refused(batch: list[dict[str, Any]], code: str, reason: str) -> None:
    of = dataset(SNAPSHOT, [city("a", 1)])
    with pytest.raises(SnapshotRefusedError, match=reason) as refused:
        of.push(batch)
    assert refused.value.problem.code == code
    assert of.rows.num_rows == 1


def test_a_changelog_is_taken_as_it_is_by_key_and_operation() -> None:
    batch = [
        city("b", 3, 3, op=CT),
        city("b", 1, 1, op=A),
        city("a", 9, 1, op=R),
        city("b", 1, 1, op=CF),
        city("a", 8, 9, op=A),
    ]
    of = dataset(CHANGELOG, batch)
    assert of.shown("city", "population") == [(A, "a", 8), (R, "a", 9), (A, "b", 1), (CF, "b", 1), (CT, "b", 3)]


@pytest.mark.parametrize("data_type", [pa.uint8(), pa.int8(), pa.int32(), pa.uint64()])
def test_operations_are_integers_of_any_kind(data_type: pa.DataType) -> None:
    rows = pa.Table.from_pylist([city("a", 1)], COLUMNS).append_column("op", pa.array([3], data_type))
    merged = merge(CHANGELOG, rows, None, vocabulary=WORDS)
    assert merged.op.to_pylist() == [3]
    assert merged.rows.column_names == COLUMNS.names
    texts = rows.set_column(3, "op", pa.array(["+A"]))
    with pytest.raises(BadInputSchemaError, match="'op' must be an integer, it is string"):
        merge(CHANGELOG, texts, None, vocabulary=WORDS)


@pytest.mark.parametrize("strategy", [CHANGELOG, UPSERT])
def test_records_without_key_or_with_meaningless_operation_are_refused_alone(strategy: Any) -> None:
    of = MemoryDataset(strategy, COLUMNS)
    batch = [city(None, 1, op=A), city("a", 1, op=4), city("b", 1, op=A), city("c", 1, op=-1), city(None, 1, op=7)]
    merged = of.push(batch)
    assert [(place, problem.code) for place, problem in merged.refused] == [
        (0, Code.NULL_KEY),
        (1, Code.BAD_OPERATION),
        (3, Code.BAD_OPERATION),
        (4, Code.NULL_KEY),
    ]
    assert of.shown("city") == [(A, "b")]
    assert merged.source_row.tolist() == [2]
    huge = pa.Table.from_pylist([city("a", 1)], COLUMNS).append_column("op", pa.array([2**64 - 1], pa.uint64()))
    assert len(merge(strategy, huge, of.state(), vocabulary=WORDS).refused) == 1


def test_a_changelog_needs_operations_and_an_upsert_stream_does_not() -> None:
    of = MemoryDataset(CHANGELOG, COLUMNS)
    assert [problem.code for _, problem in of.push([city("a", 1)]).refused] == [Code.BAD_OPERATION]
    assert last(dataset(UPSERT), [city("a", 1), city("b", 1, op=None), city("c", 1, op=CF)]) == [
        (A, "a", 1),
        (A, "b", 1),
        (A, "c", 1),
    ]


def test_upserts_append_correct_and_retract() -> None:
    of = dataset(UPSERT, [city("vancouver", 1, 1), city("seattle", 2, 1), city("kyiv", 4, 1), city("bakhmut", 4, 1)])
    assert last(of, [city("bakhmut", None, 2, op=R)]) == [(R, "bakhmut", 4)]
    batch = [
        city("odessa", 5, 2, op=A),
        city("kyiv", 4, 1, op=A),
        city("vancouver", 2, 2, op=A),
        city("bakhmut", 1, 2, op=A),
        city("seattle", None, 2, op=R),
        city("nowhere", None, 2, op=R),
    ]
    merged = MemoryDataset.push(of, batch)
    assert of.shown("city", "population", "event_time")[5:] == [
        (A, "bakhmut", 1, at(2)),
        (A, "odessa", 5, at(2)),
        (R, "seattle", 2, at(1)),
        (CF, "vancouver", 1, at(1)),
        (CT, "vancouver", 2, at(2)),
    ]
    assert (merged.duplicates, merged.derived) == (2, 1)
    assert merged.source_row.tolist() == [3, 0, -1, -1, 2]


def test_of_the_upserts_of_one_batch_the_last_counts() -> None:
    of = dataset(UPSERT, [city("a", 1, 1)])
    assert last(of, [city("a", 2, 2), city("b", 1, 2), city("b", 2, 1), city("a", 1, 1)]) == [(A, "b", 2)]
    assert last(of, [city("b", 9, 9), city("b", None, op=R)]) == [(R, "b", 2)]
    assert last(of, [city("c", 1, 1), city("c", None, op=R)]) == []


def test_keys_are_sorted_as_values_not_as_texts_of_them() -> None:
    columns = pa.schema([("event_time", TIME), ("n", pa.int64()), ("f", pa.float64())])
    strategy = MergeStrategyUpsertStream(primary_key=("f", "n"))
    rows = [(10, 1.0), (9, 1.0), (-1, float("nan")), (0, float("inf")), (0, -2.5), (0, -0.0), (1, float("-inf"))]
    of = dataset(strategy, [{"n": n, "f": f} for n, f in rows], columns=columns)
    found = [(row["n"], row["f"]) for row in of.rows.to_pylist()]
    assert found[:-1] == [(1, float("-inf")), (0, -2.5), (0, 0.0), (9, 1.0), (10, 1.0), (0, float("inf"))]
    assert np.isnan(found[-1][1])


def test_values_of_all_kinds_are_compared_by_their_bits() -> None:
    inner = pa.struct([("x", pa.float64()), ("l", pa.list_(pa.string()))])
    columns = pa.schema([("event_time", TIME), ("k", pa.int64()), ("f", pa.float32()), ("s", inner), ("n", pa.null())])
    nan = float("nan")
    first: list[dict[str, Any]] = [
        {"k": 1, "f": nan, "s": {"x": nan, "l": ["a", None]}},
        {"k": 2, "f": 0.0, "s": {"x": 1.0, "l": None}},
        {"k": 3, "f": 1.0, "s": None},
        {"k": 4, "f": 1.0, "s": {"x": None, "l": []}},
    ]
    of = dataset(MergeStrategySnapshot(primary_key=("k",)), first, columns=columns)
    assert of.push(first).duplicates == 4
    changed = [
        first[0],
        {"k": 2, "f": -0.0, "s": {"x": 1.0, "l": None}},
        {"k": 3, "f": 1.0, "s": {"x": None, "l": None}},
        {"k": 4, "f": 1.0, "s": {"x": None, "l": None}},
    ]
    assert [row[1] for row in _pushed(of, changed)] == [2, 2, 3, 3, 4, 4]


def _pushed(of: MemoryDataset, batch: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    before = of.rows.num_rows
    of.push(batch)
    return of.shown("k")[before:]


def test_the_state_is_of_the_highest_offsets_and_without_what_was_retracted() -> None:
    of = dataset(
        CHANGELOG,
        [city("a", 1, op=A), city("b", 1, op=A), city(None, 1, op=A)],
        [city("a", 1, op=CF), city("a", 2, op=CT), city("b", 1, op=R), city("c", 5, op=CF)],
    )
    shuffled = of.rows.take(pa.array(list(range(of.rows.num_rows))[::-1]))
    for rows in (of.rows, shuffled):
        latest = latest_rows(rows, ("city",), WORDS)
        assert latest.column_names == COLUMNS.names
        assert latest["population"].to_pylist() == [2]
    assert latest_rows(of.rows.slice(0, 0), ("city",), WORDS).num_rows == 0


def test_rows_of_earlier_schemas_have_nulls_where_they_have_no_column() -> None:
    before = dataset(UPSERT, [city("a", 1, 1)])
    columns = pa.schema([*COLUMNS, ("area", pa.float64())])
    rows = pa.Table.from_pylist([city("a", 1, 1, area=None), city("b", 1, 1, area=2.0)], columns)
    state = TableRows(before.latest(), ("city",))
    assert merge(UPSERT, rows, state, vocabulary=WORDS).rows["area"].to_pylist() == [2.0]
    wider = merge(SNAPSHOT, rows.slice(0, 0), before.latest(), vocabulary=WORDS)
    assert wider.rows.to_pylist() == [city("a", 1, 1, area=None)]


def test_strategies_with_a_memory_must_be_given_it() -> None:
    rows = COLUMNS.empty_table()
    for strategy in (SNAPSHOT, UPSERT, MergeStrategyLedger(primary_key=("city",))):
        with pytest.raises(ValueError, match="needs the state"):
            merge(strategy, rows, None, vocabulary=WORDS)
