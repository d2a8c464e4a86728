from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.ingest.merge import ledger_keys
from odf_common.messages.completion import Completion
from odf_common.metadata.sources import MergeStrategyLedger
from streaming_jobs.ingest.key_index import KeyIndexes
from tests.unit.streaming_jobs.ingest.builders import APPEND, LEDGER, Bench, event, messages

POPULATION = MergeStrategyLedger(primary_key=("population",))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, merges={"default": LEDGER})


def known(indexes: KeyIndexes, bench: Bench, cities: Sequence[str], source: str = "default") -> list[bool]:
    index = indexes.for_source(bench.source(source).plan)
    assert index is not None
    return index.contains(keys(cities))


def keys(cities: Sequence[str]) -> list[bytes]:
    found: list[bytes] = ledger_keys(pa.table({"city": pa.array(cities, pa.string())}), ["city"]).to_pylist()
    return found


def ingest(bench: Bench, *cities: str, start: int, source: str = "default") -> None:
    """A run of the job that takes one batch and ends."""
    with closing(bench.writer()) as writer:
        bench.commit(*writer.write(source, messages(*map(event, cities), start=start)))


@pytest.fixture
def filled(bench: Bench) -> Bench:
    ingest(bench, "a", "b", start=0)
    ingest(bench, "c", start=2)
    return bench


def test_it_reads_the_slices_of_the_chain(filled: Bench) -> None:
    shutil.rmtree(filled.folder / "index")
    with closing(filled.indexes()) as indexes:
        assert known(indexes, filled, ["a", "x", "c", "a"]) == [True, False, True, True]
        assert known(indexes, filled, []) == []


def test_what_it_knows_is_not_read_again(filled: Bench) -> None:
    with closing(filled.indexes()):
        pass
    slices = filled.folder / filled.dataset_id.multibase / "data"
    shutil.rmtree(slices)
    with closing(filled.indexes()) as indexes:
        assert known(indexes, filled, ["a", "c", "x"]) == [True, True, False]


def test_only_new_slices_are_read(filled: Bench) -> None:
    with closing(filled.indexes()):
        ...
    ingest(filled, "d", start=3)
    with closing(filled.indexes()) as indexes:
        assert known(indexes, filled, ["a", "d", "e"]) == [True, True, False]


def test_keys_that_wait_for_their_commit_count(bench: Bench) -> None:
    with closing(bench.writer()) as writer:
        first = list(writer.write("default", messages(event("a"))))
        second = list(writer.write("default", messages(event("a"), event("b"), start=1)))
        bench.commit(*first)
        writer.committed(1)
        third = list(writer.write("default", messages(event("a"), event("b"), start=3)))
        bench.commit(*second, *third)
    assert [row["city"] for row in bench.rows()] == ["a", "b"]
    bench.certify()


def test_a_rejected_batch_leaves_nothing_behind(bench: Bench) -> None:
    with closing(bench.writer()) as writer:
        rejected = list(writer.write("default", messages(event("a"), event("b"))))
        assert rejected
    with closing(bench.indexes()) as indexes:
        assert known(indexes, bench, ["a", "b"]) == [False, False]


def test_a_crash_before_a_commit_was_heard_of_forgets_nothing(bench: Bench) -> None:
    with closing(bench.writer()) as writer:
        bench.commit(*writer.write("default", messages(event("a"))))
    with closing(bench.indexes()) as indexes:
        assert known(indexes, bench, ["a"]) == [True]


def test_the_index_of_another_chain_is_made_anew(filled: Bench, tmp_path: Path) -> None:
    with closing(filled.indexes()):
        ...
    other = Bench(tmp_path / "other", merges={"default": LEDGER}, dataset_id=filled.dataset_id)
    ingest(other, "p", "q", start=0)
    ingest(other, "r", start=2)
    shutil.rmtree(other.folder / "index")
    shutil.move(filled.folder / "index", other.folder / "index")
    with closing(other.indexes()) as indexes:
        assert known(indexes, other, ["a", "p", "r"]) == [False, True, True]


def test_an_index_that_is_ahead_of_the_chain_is_made_anew(filled: Bench, tmp_path: Path) -> None:
    """Such as after the dataset was restored from a backup."""
    with closing(filled.indexes()):
        ...
    empty = Bench(tmp_path / "other", merges={"default": LEDGER}, dataset_id=filled.dataset_id)
    shutil.move(filled.folder / "index", empty.folder / "index")
    with closing(empty.indexes()) as indexes:
        assert known(indexes, empty, ["a", "c"]) == [False, False]


def test_a_damaged_index_is_made_anew(filled: Bench) -> None:
    with closing(filled.indexes()):
        ...
    for current in (filled.folder / "index").rglob("CURRENT"):
        current.write_bytes(b"damaged")
    with closing(filled.indexes()) as indexes:
        assert known(indexes, filled, ["a", "c", "x"]) == [True, True, False]


def test_an_index_that_is_in_use_is_left_alone(filled: Bench) -> None:
    with closing(filled.indexes()) as indexes:
        with pytest.raises(Exception, match="lock"):
            filled.indexes()
        assert known(indexes, filled, ["a"]) == [True]


def test_rows_of_all_sources_count_for_each_key(tmp_path: Path) -> None:
    bench = Bench(tmp_path, merges={"one": LEDGER, "two": POPULATION, "three": APPEND})
    ingest(bench, "a", start=0, source="three")
    with closing(bench.writer()) as writer:
        batches = [
            *writer.write("three", messages(event("b", population=7), start=1)),
            *writer.write("one", messages(event("a"), event("b"), event("c", population=8))),
            *writer.write(
                "two", messages(event("x", population=7), event("y", population=8), event("z", population=9))
            ),
        ]
    bench.commit(*batches)
    assert [row["city"] for row in bench.rows()] == ["a", "b", "c", "z"]
    bench.certify()


def test_without_a_ledger_there_is_no_index(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with closing(bench.indexes()) as indexes:
        assert indexes.for_source(bench.source().plan) is None
    assert not (tmp_path / "index").exists()


def test_a_column_that_came_later_has_no_keys_before(tmp_path: Path) -> None:
    from odf_common.metadata.sources import ReadStepNdJson

    bench = Bench(tmp_path, merges={"default": APPEND, "late": LEDGER}, read=ReadStepNdJson())
    with closing(bench.writer()) as writer:
        bench.commit(*writer.write("default", messages(b'{"other":1}')))
    with closing(bench.writer()) as writer:
        bench.commit(*writer.write("late", messages(event("a"), event("b"))))
    shutil.rmtree(bench.folder / "index")
    with closing(bench.indexes()) as indexes:
        assert known(indexes, bench, ["a", "c"], "late") == [True, False]


Batches = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4), min_size=1, max_size=5)


@settings(max_examples=12)
@given(Batches, st.data())
def test_a_key_is_a_row_once_whenever_commits_and_restarts_come(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]], data: st.DataObject
) -> None:
    bench = Bench(tmp_path_factory.mktemp("ledger"), merges={"default": LEDGER})
    position, expected = 0, set[str]()
    for batch in _runs(batches, data):
        with closing(bench.writer()) as writer:
            sent: list[Completion] = []
            for cities in batch:
                sent += writer.write("default", messages(*map(event, cities), start=position))
                position += len(cities)
                if data.draw(st.booleans()):
                    bench.commit(*sent)
                    writer.committed(bench.chain.state().next_offset)
                    sent = []
            bench.commit(*sent)
        expected |= {city for cities in batch for city in cities}
    found = [row["city"] for row in bench.rows()]
    assert set(found) == expected
    # Rows of one batch are not compared with each other, and no two batches have the same key.
    assert len(found) == len(set(found)) + sum(_repeated(batches))
    bench.certify()


def _runs(batches: list[list[str]], data: st.DataObject) -> Iterator[list[list[str]]]:
    while batches:
        count = data.draw(st.integers(1, len(batches)))
        yield batches[:count]
        batches = batches[count:]


def _repeated(batches: list[list[str]]) -> Iterator[int]:
    seen = set[str]()
    for cities in batches:
        new = [city for city in cities if city not in seen]
        yield len(new) - len(set(new))
        seen |= set(cities)
