from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.ingest.merge import Merged, TableRows, latest_rows, merge, merge_keys
from odf_common.metadata.events import SetVocab
from odf_common.metadata.sources import MergeStrategyUpsertStream
from streaming_jobs.ingest.state import KeyedStates, LiveRows, Progress, StateDamagedError
from tests.unit.streaming_jobs.ingest.state.datasets import TIME, Dataset, table

UPSERT = MergeStrategyUpsertStream(primary_key=("id",))
SCHEMA = pa.schema([("event_time", TIME), ("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(tmp_path, [UPSERT])


def live_rows(states: KeyedStates) -> LiveRows:
    found = states.for_strategy(UPSERT)
    assert isinstance(found, LiveRows)
    return found


def latest(states: KeyedStates, ids: Sequence[int], schema: pa.Schema = SCHEMA) -> list[dict[str, Any] | None]:
    """For each id its row, without event time."""
    keys = merge_keys(pa.table({"id": pa.array(ids, pa.int64())}), ["id"])
    found, rows = live_rows(states).latest(keys, schema)
    left = iter(rows.drop_columns(["event_time"]).to_pylist())
    return [next(left) if known else None for known in found.tolist()]


def people(*pairs: tuple[int, str | None]) -> pa.Table:
    ids, names = zip(*pairs, strict=True)
    return table(id=pa.array(ids, pa.int64()), name=pa.array(names, pa.string()))


def test_the_last_row_of_a_key_counts_while_it_is_live(dataset: Dataset) -> None:
    dataset.add(people((1, "a"), (2, "b"), (3, "c"), (4, "d")))
    dataset.add(people((1, "a"), (2, "b"), (2, "B"), (4, "d")), [1, 2, 3, 2])
    with closing(dataset.states()) as states:
        assert latest(states, [3, 1, 2, 4, 9]) == [{"id": 3, "name": "c"}, None, {"id": 2, "name": "B"}, None, None]
        assert latest(states, []) == []


def test_what_waits_counts_and_the_newest_of_it_first(dataset: Dataset) -> None:
    dataset.add(people((1, "a"), (2, "b")))
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(people((1, "a"), (1, "A"), (3, "c")), [2, 3, 0]))
        states.propose(*dataset.stage(people((1, "A"), (2, "b")), [2, 1]))
        assert latest(states, [1, 2, 3]) == [None, None, {"id": 3, "name": "c"}]
        states.committed(dataset.commit(1))
        assert latest(states, [3, 2, 1]) == [{"id": 3, "name": "c"}, None, None]
        states.committed(dataset.commit())
        assert latest(states, [3, 2, 1]) == [{"id": 3, "name": "c"}, None, None]


def test_a_rejected_batch_leaves_nothing_behind(dataset: Dataset) -> None:
    dataset.add(people((1, "a")))
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(people((1, "a"), (2, "b")), [1, 0]))
    dataset.staged.clear()
    with closing(dataset.states()) as states:
        assert latest(states, [1, 2]) == [{"id": 1, "name": "a"}, None]


def test_what_is_withdrawn_does_not_count(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(people((1, "a"))))
        states.propose(*dataset.stage(people((1, "a"), (2, "b")), [1, 0]))
        states.withdraw(1)
        del dataset.staged[1:]
        assert latest(states, [1, 2]) == [{"id": 1, "name": "a"}, None]
        states.propose(*dataset.stage(people((3, "c"))))
        states.committed(dataset.commit())
        assert latest(states, [1, 2, 3]) == [{"id": 1, "name": "a"}, None, {"id": 3, "name": "c"}]


def test_columns_that_came_later_are_null_before(dataset: Dataset) -> None:
    dataset.add(people((1, "a"), (2, "b")))
    place = pa.array([{"x": 1}], pa.struct([("x", pa.int32())]))
    dataset.add(people((2, "B")).append_column("place", place), [3])
    wide = SCHEMA.append(pa.field("place", place.type))
    wider = SCHEMA.append(pa.field("place", pa.struct([("x", pa.int32()), ("y", pa.string())])))
    for _ in range(2):
        with closing(dataset.states()) as states:
            assert latest(states, [2, 1], wide) == [
                {"id": 2, "name": "B", "place": {"x": 1}},
                {"id": 1, "name": "a", "place": None},
            ]
            assert latest(states, [2], wider) == [{"id": 2, "name": "B", "place": {"x": 1, "y": None}}]
            assert latest(states, [2], SCHEMA) == [{"id": 2, "name": "B"}]


def test_rows_from_before_the_key_column_have_no_key(dataset: Dataset) -> None:
    dataset.add(table(name=pa.array(["old"])))
    dataset.add(people((1, "a")))
    with closing(dataset.states()) as states:
        assert latest(states, [1, 2]) == [{"id": 1, "name": "a"}, None]


def test_slices_are_read_with_the_vocabulary_of_their_time(dataset: Dataset) -> None:
    dataset.add(people((1, "a"), (2, "b")))
    dataset.append(SetVocab(offset_column="o", operation_type_column="change", system_time_column="s"))
    dataset.add(people((1, "a")), [1])
    dataset.append(SetVocab(operation_type_column="kind"))
    dataset.add(people((3, "c")))
    dataset.append(SetVocab(event_time_column="event_time"))
    with closing(dataset.states()) as states:
        assert latest(states, [1, 2, 3]) == [None, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}]


def test_progress_is_told(dataset: Dataset) -> None:
    for number in range(3):
        dataset.add(people((number, "x"), (7, "y")))
    told: list[Progress] = []
    with closing(dataset.states(told.append)):
        assert [(each.done, each.total) for each in told] == [(6, 6)]
        assert told[0].rate > 0
    with closing(dataset.states(told.append)):
        assert len(told) == 1  # nothing to read


@pytest.mark.parametrize("pattern", ["CURRENT", "MANIFEST-*"])
def test_a_damaged_store_is_made_anew(dataset: Dataset, pattern: str) -> None:
    dataset.add(people((1, "a")))
    with closing(dataset.states()):
        pass
    for path in dataset.states_folder.rglob(pattern):
        path.write_bytes(b"damaged")
    with closing(dataset.states()) as states:
        assert latest(states, [1]) == [{"id": 1, "name": "a"}]


@pytest.mark.slow
def test_damage_that_shows_later_is_noticed(dataset: Dataset) -> None:
    count = 30_000
    rows = table(id=pa.array(range(count), pa.int64()), name=pa.array(["x" * 50] * count))
    dataset.add(rows)
    with closing(dataset.states()):
        pass
    largest = max(dataset.states_folder.rglob("*.sst"), key=lambda path: path.stat().st_size)
    damaged = bytearray(largest.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 100] = bytes(100)
    largest.write_bytes(damaged)
    with closing(dataset.states()) as states, pytest.raises(StateDamagedError, match="made anew"):
        latest(states, range(0, count, 7))
    with closing(dataset.states()) as states:
        assert None not in latest(states, range(0, count, 7))


def test_a_slice_of_which_only_a_part_was_read_is_read_again(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash in the middle of a long slice, and a chain that has another slice there afterwards."""
    monkeypatch.setattr("streaming_jobs.ingest.state.catching_up._ROWS", 1)
    monkeypatch.setattr("odf_common.data.parquet_file._BATCH_ROWS", 2)
    dataset.add(people((1, "a")))
    dataset.add(people((2, "b"), (3, "c"), (4, "d"), (5, "e")))

    def stop(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dataset.states(stop)
    other = Dataset(dataset.folder / "other", [UPSERT], dataset.dataset_id)
    other.add(people((1, "a")))
    other.add(people((2, "B"), (9, "z")))
    shutil.copytree(dataset.states_folder, other.states_folder)
    for each, ids in ((dataset, [2, 3, 5]), (other, [2, 9])):
        with closing(each.states()) as states:
            found = latest(states, range(1, 10))
            assert [row["id"] for row in found if row is not None] == [
                1,
                *sorted({*ids, 4} if each is dataset else ids),
            ]


Ids = st.integers(0, 6)
Upserts = st.lists(
    st.tuples(Ids, st.sampled_from(["x", "y", None]), st.sampled_from([0, 0, 0, 1])), min_size=1, max_size=6
)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(Upserts, min_size=1, max_size=6), st.data())
def test_merges_are_those_of_the_reference_whenever_commits_and_restarts_come(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[int, str | None, int]]], data: st.DataObject
) -> None:
    dataset = Dataset(tmp_path_factory.mktemp("upsert"), [UPSERT])
    states = dataset.states()
    try:
        for batch in batches:
            ids, names, ops = zip(*batch, strict=True)
            rows = table(id=pa.array(ids, pa.int64()), name=pa.array(names, pa.string()), op=pa.array(ops, pa.int32()))
            merged = merge(UPSERT, rows, live_rows(states), vocabulary=dataset.vocabulary)
            assert_same(merged, merge(UPSERT, rows, reference(dataset), vocabulary=dataset.vocabulary))
            if merged.rows.num_rows:
                states.propose(*dataset.stage(merged.rows, merged.op))
            event = data.draw(st.sampled_from(["nothing", "commit", "restart", "rebuild"]))
            if event == "commit" and dataset.staged:
                states.committed(dataset.commit(data.draw(st.integers(1, len(dataset.staged)))))
            if event in ("restart", "rebuild"):
                dataset.commit()  # which was not heard of
                states.close()
                if event == "rebuild":
                    shutil.rmtree(dataset.states_folder)
                states = dataset.states()
    finally:
        states.close()


def reference(dataset: Dataset) -> TableRows:
    history = dataset.history()
    known = SCHEMA.empty_table() if history is None else latest_rows(history, ["id"], dataset.vocabulary)
    return TableRows(known, ["id"])


def assert_same(found: Merged, expected: Merged) -> None:
    assert found.rows.to_pylist() == expected.rows.to_pylist()
    assert found.op.equals(expected.op)
    assert found.source_row.tolist() == expected.source_row.tolist()
    assert (found.duplicates, found.derived) == (expected.duplicates, expected.derived)


@pytest.mark.parametrize("known", [3_000, pytest.param(150_000, marks=pytest.mark.slow)])
def test_many_keys_at_once_are_found_as_few_are(dataset: Dataset, known: int) -> None:
    """Through each way of reading and writing them."""
    ids = [number * 7_919 % 1_000_003 for number in range(known)]
    dataset.add(table(id=pa.array(ids, pa.int64()), name=pa.array([str(number) for number in ids])))
    with closing(dataset.states()) as states:
        for asked in (ids[::50], [*ids[::-1], *range(1_000_003, 1_100_003)], [*ids[:10], *range(2_000_000, 2_150_000)]):
            found = latest(states, asked)
            there = set(ids)
            assert found == [{"id": each, "name": str(each)} if each in there else None for each in asked]
        states.propose(*dataset.stage(table(id=pa.array(ids, pa.int64()), name=pa.array(["new"] * known)), [3] * known))
        assert {row["name"] for row in latest(states, ids) if row is not None} == {"new"}
        states.committed(dataset.commit())
        assert {row["name"] for row in latest(states, ids) if row is not None} == {"new"}
