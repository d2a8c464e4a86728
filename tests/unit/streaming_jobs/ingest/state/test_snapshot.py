from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.ingest.errors import IncompatibleSchemaError
from odf_common.ingest.merge import Merged, SnapshotRefusedError, latest_rows, merge
from odf_common.ingest.messages import Problem
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import MergeStrategySnapshot
from streaming_jobs.ingest.state import KeyedStates, Progress, SnapshotState
from streaming_jobs.ingest.state.duck import opened_duck
from streaming_jobs.ingest.state.row_file import RowFileWriter
from streaming_jobs.ingest.state.snapshot_merge import merged_snapshot
from tests.unit.streaming_jobs.ingest.state.datasets import TIME, Dataset, table

VOCABULARY = DatasetVocabulary()
SNAPSHOT = MergeStrategySnapshot(primary_key=("city",))
T1, T2 = (datetime(2000, 1, day, 12, tzinfo=UTC) for day in (1, 2))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(tmp_path, [SNAPSHOT])


def cities(when: datetime | None = None, **population: int | None) -> pa.Table:
    return table(
        event_time=pa.array([when] * len(population), TIME),
        city=pa.array(population, pa.string()),
        population=pa.array(population.values(), pa.int64()),
    )


def snapshot_state(states: KeyedStates) -> SnapshotState:
    found = states.for_strategy(SNAPSHOT)
    assert isinstance(found, SnapshotState)
    return found


def joined(parts: Iterator[Merged]) -> Merged | None:
    """The parts as one."""
    found = list(parts)
    if not found:
        return None
    return Merged(
        rows=pa.concat_tables(part.rows for part in found),
        op=pa.concat_arrays([part.op for part in found]),
        source_row=np.concatenate([part.source_row for part in found]),
        duplicates=sum(part.duplicates for part in found),
        derived=sum(part.derived for part in found),
    )


def changes(merged: Merged | None) -> list[tuple[Any, ...]]:
    assert merged is not None
    return [
        (op, row["city"], row["population"], row["event_time"])
        for op, row in zip(merged.op.to_pylist(), merged.rows.to_pylist(), strict=True)
    ]


def take(dataset: Dataset, states: KeyedStates, rows: pa.Table, filled: datetime | None = None) -> Merged | None:
    """What the job does with a snapshot."""
    merged = joined(snapshot_state(states).merge(SNAPSHOT, [rows]))
    if merged is not None and merged.rows.num_rows:
        final = merged.rows
        if filled is not None:
            column = final["event_time"].fill_null(filled)
            final = final.set_column(final.column_names.index("event_time"), "event_time", column)
        states.propose(*dataset.stage(final, merged.op))
        states.committed(dataset.commit())
    return merged


def test_the_worked_example(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        first = take(dataset, states, cities(C=3000, A=1000, D=4000, B=2000), T1)
        assert changes(first) == [
            (0, "A", 1000, None),
            (0, "B", 2000, None),
            (0, "C", 3000, None),
            (0, "D", 4000, None),
        ]
        second = take(dataset, states, cities(C=3000, B=4000, D=5000), T2)
        assert second is not None
        assert changes(second) == [
            (1, "A", 1000, T1),
            (2, "B", 2000, T1),
            (3, "B", 4000, None),
            (2, "D", 4000, T1),
            (3, "D", 5000, None),
        ]
        assert (second.source_row.tolist(), second.duplicates, second.derived) == ([-1, -1, 1, -1, 2], 1, 3)
        unchanged = take(dataset, states, cities(C=3000, B=4000, D=5000))
        assert unchanged is not None
        assert (unchanged.rows.num_rows, unchanged.duplicates) == (0, 3)


def test_nothing_of_the_dataset_may_be_in_flight(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(cities(A=1)))
        with pytest.raises(ValueError, match="committed"):
            next(snapshot_state(states).merge(SNAPSHOT, [cities(A=2)]))
        states.committed(dataset.commit())
        assert changes(take(dataset, states, cities(A=2))) == [(2, "A", 1, None), (3, "A", 2, None)]


def test_a_rejected_snapshot_leaves_nothing_behind(dataset: Dataset) -> None:
    dataset.add(cities(A=1))
    with closing(dataset.states()) as states:
        merged = joined(snapshot_state(states).merge(SNAPSHOT, [cities(B=2)]))
        assert merged is not None
        states.propose(*dataset.stage(merged.rows, merged.op))
    dataset.staged.clear()
    with closing(dataset.states()) as states:
        assert changes(take(dataset, states, cities(A=1, B=2))) == [(0, "B", 2, None)]


def test_a_snapshot_that_is_withdrawn_leaves_nothing_behind(dataset: Dataset) -> None:
    dataset.add(cities(A=1))
    with closing(dataset.states()) as states:
        merged = joined(snapshot_state(states).merge(SNAPSHOT, [cities(B=2)]))
        assert merged is not None
        states.propose(*dataset.stage(merged.rows, merged.op))
        states.withdraw(1)
        dataset.staged.clear()
        assert changes(take(dataset, states, cities(A=1, B=2))) == [(0, "B", 2, None)]


def test_rows_of_other_sources_belong_to_the_state(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        take(dataset, states, cities(A=1, B=2))
        states.propose(*dataset.stage(cities(B=2, C=3), [1, 0]))
        states.committed(dataset.commit())
        assert changes(take(dataset, states, cities(A=1))) == [(1, "C", 3, None)]


def test_a_folder_that_was_lost_is_made_anew(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        take(dataset, states, cities(A=1, B=2))
        take(dataset, states, cities(A=1, B=3))
    shutil.rmtree(dataset.states_folder)
    told: list[Progress] = []
    with closing(dataset.states(told.append)) as states:
        assert [(each.done, each.total) for each in told] == [(2, 4), (4, 4)]
        assert changes(take(dataset, states, cities(B=3))) == [(1, "A", 1, None)]


def test_what_is_known_is_not_read_again(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        take(dataset, states, cities(A=1, B=2))
    shutil.rmtree(dataset.folder / "dataset" / "data")
    with closing(dataset.states()) as states:
        assert changes(joined(snapshot_state(states).merge(SNAPSHOT, [cities(A=1)]))) == [(1, "B", 2, None)]


@pytest.mark.parametrize("pattern", ["rows-*.arrow", "state.json"])
@pytest.mark.parametrize("damage", [b"", b"[1, 2]", None])
def test_a_damaged_file_is_made_anew(dataset: Dataset, pattern: str, damage: bytes | None) -> None:
    with closing(dataset.states()) as states:
        take(dataset, states, cities(A=1, B=2))
    for path in dataset.states_folder.rglob(pattern):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
    with closing(dataset.states()) as states:
        assert changes(take(dataset, states, cities(A=1))) == [(1, "B", 2, None)]


def test_left_overs_of_a_crash_are_removed(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        take(dataset, states, cities(A=1, B=2))
    (folder,) = dataset.states_folder.iterdir()
    (folder / "rows-99.arrow").write_bytes(b"half of it")
    (folder / "merge").mkdir()
    (folder / "merge" / "new-0.arrow").write_bytes(b"")
    with closing(dataset.states()):
        assert sorted(path.name for path in folder.iterdir()) == ["lock", "rows-2.arrow", "state.json"]


def test_a_state_of_another_chain_is_made_anew(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        take(dataset, states, cities(A=1, B=2))
    other = Dataset(dataset.folder / "other", [SNAPSHOT], dataset.dataset_id)
    other.add(cities(P=1, Q=2))
    shutil.copytree(dataset.states_folder, other.states_folder)
    with closing(other.states()) as states:
        assert changes(take(other, states, cities(P=1))) == [(1, "Q", 2, None)]


def test_a_state_that_is_in_use_is_left_alone(dataset: Dataset) -> None:
    with closing(dataset.states()), pytest.raises(OSError, match="another process"):
        dataset.states()


def test_columns_that_came_later_are_null_before(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        take(dataset, states, cities(A=1, B=2))
        wide = cities(A=1, B=2).append_column("mayor", pa.array([None, "x"]))
        merged = take(dataset, states, wide)
        assert merged is not None
        assert [(row["city"], row["mayor"]) for row in merged.rows.to_pylist()] == [("B", None), ("B", "x")]
        again = take(dataset, states, wide)
        assert again is not None
        assert again.duplicates == 2


def test_parts_of_a_snapshot_may_lack_columns_that_others_have(dataset: Dataset) -> None:
    parts = [cities(B=2), cities(A=1).append_column("mayor", pa.array(["x"])), cities(C=3)]
    with closing(dataset.states()) as states:
        merged = joined(snapshot_state(states).merge(SNAPSHOT, parts))
        assert merged is not None
        assert [row["mayor"] for row in merged.rows.to_pylist()] == ["x", None, None]
        assert merged.source_row.tolist() == [1, 0, 2]
        with pytest.raises(IncompatibleSchemaError, match="more than one type"):
            joined(snapshot_state(states).merge(SNAPSHOT, [cities(B=2), table(city=pa.array(["A"]), population=["x"])]))


def test_an_empty_snapshot_takes_everything_away(dataset: Dataset) -> None:
    dataset.add(cities(A=1, B=2))
    with closing(dataset.states()) as states:
        assert joined(snapshot_state(states).merge(SNAPSHOT, [])) is None
        assert changes(take(dataset, states, cities())) == [(1, "A", 1, None), (1, "B", 2, None)]


def test_the_description_is_never_ahead_of_the_file(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset.add(cities(A=1, B=2))
    with closing(dataset.states()):
        pass
    dataset.add(cities(A=1), [1])

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SnapshotState, "_describe", crash)
        with pytest.raises(KeyboardInterrupt):
            dataset.states()
    (folder,) = dataset.states_folder.iterdir()
    assert json.loads((folder / "state.json").read_text())[0] == "rows-2.arrow"
    with closing(dataset.states()) as states:
        assert changes(take(dataset, states, cities(B=3))) == [(2, "B", 2, None), (3, "B", 3, None)]


NAN = float("nan")
VALUES: dict[pa.DataType, Sequence[Any]] = {
    pa.int64(): [-(2**63), -1, 0, 1, 2**63 - 1],
    pa.uint64(): [0, 1, 2**64 - 1],
    pa.int8(): [-3, 0, 3],
    pa.bool_(): [False, True],
    pa.string(): ["", "a", "B", "ab", "é", "\U0001f600", "a\x00", "￿"],
    pa.binary(): [b"", b"\x00", b"\x00\x01", b"\x7f", b"\x80", b"\xff"],
    pa.float64(): [0.0, -0.0, 1.5, -1.5, NAN, float("inf"), float("-inf")],
    pa.float32(): [0.0, -0.0, 1.5, -1.5, NAN],
    pa.date32(): [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    pa.time64("us"): [time(0), time(23, 59, 59, 999_999)],
    TIME: [T1, T2, datetime(1900, 1, 1, tzinfo=UTC)],
    pa.timestamp("ns"): [datetime(2024, 1, 1), datetime(1950, 1, 1)],
    pa.decimal128(10, 2): [Decimal("-1.50"), Decimal("0.00"), Decimal("12345678.90")],
    pa.decimal256(50, 3): [Decimal("-1.500"), Decimal("0.000"), Decimal("1" * 40 + ".125")],
    pa.large_string(): ["", "x", "y"],
    pa.binary(3): [b"abc", b"\xff\x00\x00"],
}
NESTED: dict[pa.DataType, Sequence[Any]] = {
    pa.struct([("x", pa.float64()), ("y", pa.string())]): [{"x": 1.0, "y": "a"}, {"x": NAN, "y": None}, {"x": -0.0}],
    pa.list_(pa.int32()): [[], [1], [1, None], [1, 2]],
    pa.map_(pa.string(), pa.int64()): [[], [("a", 1)], [("a", None)]],
    pa.null(): [None],
}


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[MergeStrategySnapshot, pa.Table, pa.Table]:
    """A strategy, the live latest rows, and a snapshot; now and then one that cannot be taken."""
    kinds = st.sampled_from(list(VALUES))
    keys = draw(st.lists(kinds, min_size=1, max_size=2))
    others = draw(st.lists(kinds | st.sampled_from(list(NESTED)), max_size=2))
    columns = {f"k{number}": kind for number, kind in enumerate(keys)} | {"event_time": TIME}
    columns |= {f"v{number}": kind for number, kind in enumerate(others)}
    schema = pa.schema(list(columns.items()))
    spoilt = draw(st.integers(0, 9))

    def rows(*, is_state: bool) -> pa.Table:
        wanted = draw(st.lists(st.tuples(*(_value(name, kind) for name, kind in columns.items())), max_size=7))
        found = pa.table(
            [pa.array(values, kind) for values, kind in zip(_turned(wanted, schema), columns.values(), strict=True)],
            schema=schema,
        )
        offsets = pa.table(
            {"offset": pa.array(range(found.num_rows), pa.int64()), "op": pa.array([0] * found.num_rows, pa.int32())}
        )
        for name in schema.names:
            offsets = offsets.append_column(name, found[name])
        unique = latest_rows(offsets, list(schema.names[: len(keys)]), VOCABULARY)
        return unique if is_state or spoilt else found

    def _value(name: str, kind: pa.DataType) -> st.SearchStrategy[Any]:
        known = st.sampled_from(VALUES.get(kind) or NESTED[kind])
        return known | st.none() if not name.startswith("k") or not spoilt else known

    compared = draw(st.none() | st.lists(st.sampled_from([*columns][len(keys) :]), min_size=1, unique=True).map(tuple))
    strategy = MergeStrategySnapshot(primary_key=tuple(schema.names[: len(keys)]), compare_columns=compared)
    state = rows(is_state=True)
    new = rows(is_state=False)
    if draw(st.booleans()) and state.num_rows and spoilt:  # much that stays
        both = pa.concat_tables([new, state])
        numbered = both.add_column(0, "offset", pa.array(range(both.num_rows), pa.int64())).add_column(
            1, "op", pa.array([0] * both.num_rows, pa.int32())
        )
        new = latest_rows(numbered, strategy.primary_key, VOCABULARY)
        new = new.take(pa.array(draw(st.permutations(range(new.num_rows))), pa.int64()))
    return strategy, state, new


def _turned(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True)) if rows else [()] * len(schema.names)


@pytest.mark.slow
@settings(max_examples=60)
@given(snapshots(), st.integers(1, 4))
def test_it_is_the_merge_of_the_reference(
    tmp_path_factory: pytest.TempPathFactory,
    snapshot: tuple[MergeStrategySnapshot, pa.Table, pa.Table],
    cut: int,
) -> None:
    strategy, state, new = snapshot
    folder = tmp_path_factory.mktemp("merge")
    with RowFileWriter(folder / "state.arrow", state.schema) as writer:
        writer.write(state)
        file = writer.finish()
    area = folder / "area"
    area.mkdir()
    parts = [new.slice(start, cut) for start in range(0, max(new.num_rows, 1), cut)]
    expected = _reference(strategy, new, state)
    if isinstance(expected, Problem):
        with pytest.raises(SnapshotRefusedError) as found:
            joined(merged_snapshot(strategy, parts, file, area=area, event_time="event_time"))
        assert found.value.problem == expected
        return
    merged = joined(merged_snapshot(strategy, parts, file, area=area, event_time="event_time"))
    if merged is None:
        assert expected.rows.num_rows == expected.duplicates == 0
        return
    assert repr(merged.rows.to_pylist()) == repr(expected.rows.to_pylist())
    assert merged.rows.schema.names == expected.rows.schema.names
    assert merged.op.equals(expected.op)
    assert merged.source_row.tolist() == expected.source_row.tolist()
    assert (merged.duplicates, merged.derived) == (expected.duplicates, expected.derived)
    shutil.rmtree(folder)


def _reference(strategy: MergeStrategySnapshot, new: pa.Table, state: pa.Table) -> Merged | Problem:
    try:
        return merge(strategy, new, state, vocabulary=VOCABULARY)
    except SnapshotRefusedError as refused:
        return refused.problem


@pytest.mark.slow
def test_little_memory_is_enough(tmp_path: Path) -> None:
    count = 600_000
    ids = np.random.default_rng(7).permutation(count)
    names = pa.array(np.char.add("a rather long name that takes its place ", ids.astype(str)))
    old = table(id=pa.array(ids), name=names, value=pa.array(ids * 2))
    order = pa.array(ids)
    new = table(id=old["id"].take(order), name=names.take(order), value=pa.array(np.where(ids % 2, ids, -1)))
    with RowFileWriter(tmp_path / "state.arrow", old.schema) as writer:
        writer.write(old)
        state = writer.finish()
    strategy = MergeStrategySnapshot(primary_key=("id", "name"))
    area = tmp_path / "area"
    area.mkdir()
    parts = [new.slice(start, 50_000) for start in range(0, count, 50_000)]
    merged = joined(merged_snapshot(strategy, parts, state, area=area, event_time="event_time", memory_mib=96))
    assert merged is not None
    expected = merge(strategy, new, old, vocabulary=VOCABULARY)
    assert merged.rows.equals(expected.rows.cast(merged.rows.schema))
    assert merged.op.equals(expected.op)


def test_a_snapshot_that_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": range(200_000), "value": [str(number) * 8 for number in range(200_000)]})

    def compare() -> None:
        with opened_duck(tmp_path, 1) as duck:
            duck.register("rows", rows)
            duck.execute("select * from rows a join rows b using (id) order by b.value").fetchall()

    with pytest.raises(SnapshotRefusedError, match="takes more than 1 MiB of memory"):
        compare()
