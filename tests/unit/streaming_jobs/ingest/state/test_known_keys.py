from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.ingest.merge import merge_keys
from odf_common.metadata.sources import MergeStrategyAppend, MergeStrategyChangelogStream, MergeStrategyLedger
from streaming_jobs.ingest.state import KeyedStates, KnownKeys
from tests.unit.streaming_jobs.ingest.state.datasets import Dataset, table

LEDGER = MergeStrategyLedger(primary_key=("city",))
POPULATION = MergeStrategyLedger(primary_key=("population",))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(tmp_path, [LEDGER])


@pytest.fixture
def filled(dataset: Dataset) -> Dataset:
    dataset.add(cities("a", "b"))
    dataset.add(cities("c", None))
    return dataset


def cities(*names: str | None) -> pa.Table:
    return table(city=pa.array(names, pa.string()))


def known(states: KeyedStates, names: Sequence[str]) -> list[bool]:
    index = states.for_strategy(LEDGER)
    assert isinstance(index, KnownKeys)
    return list(map(bool, index.contains(merge_keys(cities(*names), ["city"]).to_pylist())))


def test_it_reads_the_slices_of_the_chain(filled: Dataset) -> None:
    with closing(filled.states()) as states:
        assert known(states, ["a", "x", "c", "a"]) == [True, False, True, True]
        assert known(states, []) == []


def test_what_it_knows_is_not_read_again(filled: Dataset) -> None:
    with closing(filled.states()):
        pass
    shutil.rmtree(filled.folder / "dataset" / "data")
    with closing(filled.states()) as states:
        assert known(states, ["a", "c", "x"]) == [True, True, False]


def test_only_new_slices_are_read(filled: Dataset) -> None:
    with closing(filled.states()):
        pass
    shutil.rmtree(filled.folder / "dataset" / "data")
    filled.add(cities("d"))
    with closing(filled.states()) as states:
        assert known(states, ["a", "d", "e"]) == [True, True, False]


def test_rows_count_whatever_their_operation(filled: Dataset) -> None:
    filled.add(cities("a", "d", "d"), [1, 0, 1])
    with closing(filled.states()) as states:
        assert known(states, ["a", "d"]) == [True, True]


def test_keys_that_wait_for_their_commit_count(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(cities("a", "a")))
        states.propose(*dataset.stage(cities("b")))
        assert known(states, ["a", "b", "c"]) == [True, True, False]
        states.committed(dataset.commit(1))
        assert known(states, ["a", "b", "c"]) == [True, True, False]
        states.withdraw(2)
        assert known(states, ["a", "b", "c"]) == [True, False, False]


def test_a_rejected_batch_leaves_nothing_behind(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(cities("a")))
    with closing(dataset.states()) as states:
        assert known(states, ["a"]) == [False]


def test_a_crash_before_a_commit_was_heard_of_forgets_nothing(dataset: Dataset) -> None:
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(cities("a")))
        dataset.commit()
    with closing(dataset.states()) as states:
        assert known(states, ["a"]) == [True]


def test_the_index_of_another_chain_is_made_anew(filled: Dataset) -> None:
    with closing(filled.states()):
        pass
    other = Dataset(filled.folder / "other", [LEDGER], filled.dataset_id)
    other.add(cities("p", "q"))
    other.add(cities("r", "s"))
    shutil.copytree(filled.states_folder, other.states_folder)
    with closing(other.states()) as states:
        assert known(states, ["a", "p", "r"]) == [False, True, True]


def test_an_index_that_is_ahead_of_the_chain_is_made_anew(filled: Dataset) -> None:
    """Such as after the dataset was restored from a backup."""
    with closing(filled.states()):
        pass
    empty = Dataset(filled.folder / "other", [LEDGER], filled.dataset_id)
    shutil.copytree(filled.states_folder, empty.states_folder)
    with closing(empty.states()) as states:
        assert known(states, ["a", "c"]) == [False, False]


def test_a_damaged_index_is_made_anew(filled: Dataset) -> None:
    with closing(filled.states()):
        pass
    for current in filled.states_folder.rglob("CURRENT"):
        current.write_bytes(b"damaged")
    with closing(filled.states()) as states:
        assert known(states, ["a", "c", "x"]) == [True, True, False]


def test_an_index_that_is_in_use_is_left_alone(filled: Dataset) -> None:
    with closing(filled.states()) as states:
        with pytest.raises(Exception, match="lock"):
            filled.states()
        assert known(states, ["a"]) == [True]


def test_each_primary_key_has_its_own_index(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, [LEDGER, POPULATION, LEDGER])
    with closing(dataset.states()) as states:
        states.propose(*dataset.stage(cities("a").append_column("population", pa.array([7]))))
        assert known(states, ["a"]) == [True]
        index = states.for_strategy(POPULATION)
        assert isinstance(index, KnownKeys)
        keys = merge_keys(pa.table({"population": [7, 8]}), ["population"]).to_pylist()
        assert index.contains(keys).tolist() == [True, False]


def test_other_strategies_need_no_state(tmp_path: Path) -> None:
    changelog = MergeStrategyChangelogStream(primary_key=("city",))
    dataset = Dataset(tmp_path, [MergeStrategyAppend(), changelog])
    with closing(dataset.states()) as states:
        assert states.for_strategy(changelog) is None
    assert not dataset.states_folder.exists()


def test_a_column_that_came_later_has_no_keys_before(dataset: Dataset) -> None:
    dataset.add(table(other=pa.array([1])))
    dataset.add(cities("a").append_column("other", pa.array([2])))
    with closing(dataset.states()) as states:
        assert known(states, ["a", "c"]) == [True, False]


Batches = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=12)
@given(Batches, st.data())
def test_every_key_is_known_whenever_commits_and_restarts_come(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]], data: st.DataObject
) -> None:
    dataset = Dataset(tmp_path_factory.mktemp("ledger"), [LEDGER])
    states = dataset.states()
    seen = set[str]()
    try:
        for batch in batches:
            states.propose(*dataset.stage(cities(*batch)))
            seen |= set(batch)
            event = data.draw(st.sampled_from(["nothing", "commit", "restart", "rebuild"]))
            if event == "commit":
                states.committed(dataset.commit(data.draw(st.integers(1, len(dataset.staged)))))
            if event in ("restart", "rebuild"):
                dataset.commit()
                states.close()
                if event == "rebuild":
                    shutil.rmtree(dataset.states_folder)
                states = dataset.states()
            assert known(states, "abcdefgh") == [name in seen for name in "abcdefgh"]
    finally:
        states.close()
