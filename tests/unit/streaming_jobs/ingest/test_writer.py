from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from odf_common.chain.check import check_dataset
from odf_common.messages.completion import Completion
from odf_common.metadata.events import SetDataSchema
from odf_common.metadata.sources import ReadStepNdJson
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest import staging_area
from streaming_jobs.ingest.letters import Letter
from streaming_jobs.ingest.preprocess import PreprocessError
from streaming_jobs.ingest.writer import AnotherTopicError, BatchWriter
from tests.unit.streaming_jobs.ingest.builders import (
    LEDGER,
    Bench,
    Preprocess,
    committed_block,
    completions,
    event,
    messages,
    offsets_of,
    with_query,
)

BROKEN = b'{"city":'
ANY = ReadStepNdJson()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def written(bench: Bench, *values: bytes | None, start: int = 0, writer: BatchWriter | None = None) -> Completion:
    if writer is not None:
        (done,) = completions(writer.write("default", messages(*values, start=start)))
        return done
    with closing(bench.writer()) as own:
        return written(bench, *values, start=start, writer=own)


def rows_of(done: Completion) -> int:
    data = done.add_data.new_data
    return 0 if data is None else data.offset_interval.end - data.offset_interval.start + 1


def brings_schema(done: Completion) -> bool:
    return any(isinstance(each, SetDataSchema) for each in done.events)


def counts(done: Completion) -> tuple[int, int, int, int, int]:
    covered = offsets_of(done)
    assert covered.records + covered.derived == rows_of(done) + covered.duplicates + covered.dead_letters
    return covered.messages, covered.records, rows_of(done), covered.duplicates, covered.dead_letters


def test_batches_follow_each_other_without_waiting_for_the_chain(bench: Bench) -> None:
    with closing(bench.writer()) as writer:
        batches = [
            written(bench, event("a"), event("b"), writer=writer),
            written(bench, event("c"), BROKEN, start=2, writer=writer),
            written(bench, None, start=4, writer=writer),
            written(bench, event("d"), start=5, writer=writer),
        ]
    assert [(offsets_of(each).start, offsets_of(each).next) for each in batches] == [
        ({}, {0: 2}),
        ({0: 2}, {0: 4}),
        ({0: 4}, {0: 5}),
        ({0: 5}, {0: 6}),
    ]
    assert [each.add_data.prev_offset for each in batches] == [None, 1, 2, 2]
    assert [counts(each) for each in batches] == [(2, 2, 2, 0, 0), (2, 2, 1, 0, 1), (1, 1, 0, 0, 1), (1, 1, 1, 0, 0)]
    assert [brings_schema(each) for each in batches] == [True, False, False, False]
    bench.commit(*batches)
    assert [(row["offset"], row["city"]) for row in bench.rows()] == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    bench.certify()
    check_dataset(bench.store.objects, bench.store.refs)


def test_a_new_start_goes_on_where_the_chain_is(bench: Bench) -> None:
    bench.commit(written(bench, event("a")))
    done = written(bench, event("b"), start=1)
    assert not brings_schema(done)
    bench.commit(done)
    assert [row["offset"] for row in bench.rows()] == [0, 1]
    bench.certify()


def test_several_partitions_tile_each_on_its_own(bench: Bench) -> None:
    both = pa.concat_tables([messages(event("a"), event("b")), messages(event("c"), start=7, partition=3)])
    with closing(bench.writer()) as writer:
        (first,) = completions(writer.write("default", both))
        (second,) = completions(writer.write("default", messages(event("d"), start=8, partition=3)))
    assert offsets_of(first).next == {0: 2, 3: 8}
    assert (offsets_of(second).start, offsets_of(second).next) == ({0: 2, 3: 8}, {0: 2, 3: 9})


def test_dead_letters_are_with_the_broker_before_the_completion(bench: Bench) -> None:
    done = written(bench, BROKEN, event("a"), b"\xff\xfe")
    first, second, last = bench.messenger.sent
    assert isinstance(first, Letter)
    assert isinstance(second, Letter)
    assert last is done
    assert [(each.offset, each.code, each.data) for each in bench.messenger.letters] == [
        (0, "InvalidJson", BROKEN),
        (2, "InvalidUtf8", b"\xff\xfe"),
    ]


def test_a_failure_to_bury_proposes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("broker away")

    monkeypatch.setattr(bench.messenger, "bury", fail)
    with pytest.raises(ConnectionError):
        written(bench, BROKEN, event("a"))
    assert not bench.messenger.sent


def test_what_was_read_from_a_topic_made_anew_is_dropped(bench: Bench) -> None:
    with closing(bench.writer()) as writer:
        written(bench, event("a"), writer=writer)
        bench.topic_ids["topic.default"] = "topic-2"
        with pytest.raises(AnotherTopicError, match="the id topic-2, not topic-1"):
            list(writer.write("default", messages(BROKEN, event("b"), start=1)))
    assert len(bench.messenger.sent) == 1
    assert not bench.messenger.letters


def test_limits_cut_a_batch_into_several(tmp_path: Path) -> None:
    bench = Bench(tmp_path, settings={"batch_rows": 2})
    with closing(bench.writer()) as writer:
        batches = completions(writer.write("default", messages(*map(event, "abcde"))))
    assert [rows_of(each) for each in batches] == [2, 2, 1]
    bench.commit(*batches)
    assert [row["city"] for row in bench.rows()] == list("abcde")
    bench.certify()


def test_the_slice_is_whole_before_it_is_proposed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.messenger, "propose", lambda done: bench.commit(done))
    written(bench, event("a"))  # the committer finds it with its size
    assert len(bench.rows()) == 1
    assert [path.name for path in bench.staging.rglob("*.part")] == []


def test_a_slice_that_cannot_be_written_leaves_no_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(staging_area, "sync_path", fail)
    with pytest.raises(OSError, match="disk full"):
        written(bench, event("a"))
    assert [path for path in bench.staging.rglob("*") if path.is_file()] == []
    assert not bench.messenger.sent


def test_duplicates_alone_move_the_positions(tmp_path: Path) -> None:
    bench = Bench(tmp_path, merges={"default": LEDGER})
    bench.commit(written(bench, event("a")))
    done = written(bench, event("a"), event("a"), start=1)
    assert done.add_data.new_data is None
    assert done.add_data.new_watermark is None
    assert counts(done) == (2, 2, 0, 2, 0)
    bench.commit(done)
    bench.certify()


def clock(monkeypatch: pytest.MonkeyPatch, *times: str) -> None:
    moments = iter(map(Timestamp.parse, times))
    monkeypatch.setattr(Timestamp, "now", lambda: next(moments))


def test_a_clock_that_goes_back_does_not_take_the_chain_with_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, "2024-01-01T00:00:10.0001Z", "2024-01-01T00:00:05Z", "2024-01-01T00:00:11Z")
    with closing(bench.writer()) as writer:
        batches = [written(bench, event(str(n)), start=n, writer=writer) for n in range(3)]
    assert [str(each.system_time) for each in batches] == [
        "2024-01-01T00:00:10Z",
        "2024-01-01T00:00:10Z",
        "2024-01-01T00:00:11Z",
    ]
    bench.commit(*batches)


def test_a_chain_ahead_of_the_clock_by_less_than_a_millisecond(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of others have times of any precision; the column of a slice has milliseconds."""
    state = bench.chain.state().model_copy(update={"system_time": Timestamp.parse("2024-01-01T00:00:00.0005Z")})
    clock(monkeypatch, "2024-01-01T00:00:00.0006Z")
    with closing(bench.writer(state=state)) as writer:
        done = written(bench, event("a"), writer=writer)
    assert str(done.system_time) == "2024-01-01T00:00:00.001Z"


def test_a_new_column_evolves_the_schema_for_all_sources(tmp_path: Path) -> None:
    bench = Bench(tmp_path, merges={"one": LEDGER, "two": LEDGER}, read=ANY)
    with closing(bench.writer()) as writer:
        batches = [
            *completions(writer.write("one", messages(event("a")))),
            *completions(writer.write("one", messages(event("b", area=1.5), start=1))),
            *completions(writer.write("two", messages(event("c")))),
            *completions(writer.write("two", messages(event("d", area=2.5), start=1))),
        ]
    assert [brings_schema(each) for each in batches] == [True, True, False, False]
    bench.commit(*batches)
    assert [(row["city"], row.get("area")) for row in bench.rows()] == [
        ("a", None),
        ("b", 1.5),
        ("c", None),
        ("d", 2.5),
    ]
    bench.certify()
    check_dataset(bench.store.objects, bench.store.refs)


def test_messages_whose_columns_do_not_fit_become_dead_letters(tmp_path: Path) -> None:
    """Also the first ones, when there is no schema yet."""
    bench = Bench(tmp_path, merges={"default": LEDGER}, read=ANY)
    with closing(bench.writer()) as writer:
        bench.commit(*completions(writer.write("default", messages(b'{"city":["a"]}', event("b")))))
        bench.commit(
            *completions(writer.write("default", messages(b'{"city":"c","event_time":true}', event("d"), start=2)))
        )
    assert [row["city"] for row in bench.rows()] == ["b", "d"]
    assert [letter.offset for letter in bench.messenger.letters] == [0, 2]
    bench.certify()


def test_bad_luck_with_a_query_is_that_of_its_message(bench: Bench) -> None:
    """The others go through, in their order; nothing is lost."""
    asked: list[int] = []

    def query(rows: pa.Table) -> pa.Table:
        asked.append(rows.num_rows)
        if "bad" in rows["city"].to_pylist():
            raise PreprocessError("the query failed: it is bad")
        return rows.append_column("seen", pa.array([True] * rows.num_rows))

    batches = queried(bench, query, [*map(event, "abc"), event("bad"), *map(event, "defgh"), event("bad")])
    bench.commit(*batches)
    assert [row["city"] for row in bench.rows()] == list("abcdefgh")
    assert [(letter.offset, letter.code) for letter in bench.messenger.letters] == [
        (3, "PreprocessFailed"),
        (9, "PreprocessFailed"),
    ]
    assert "it is bad" in bench.messenger.letters[0].reason
    assert sum(offsets_of(each).records for each in batches) == 10
    bench.certify()


def queried(bench: Bench, query: Preprocess, values: Sequence[bytes]) -> list[Completion]:
    with closing(bench.writer({"default": with_query(bench.source(), query)})) as writer:
        return completions(writer.write("default", messages(*values)))


def test_a_query_may_leave_rows_out_or_make_more(bench: Bench) -> None:
    twice = queried(bench, lambda rows: pa.concat_tables([rows, rows]), [event("a"), BROKEN])
    assert [counts(each) for each in twice] == [(2, 3, 2, 0, 1)]
    bench.commit(*twice)
    bench.certify()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_is_accounted_for(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    bench = Bench(tmp_path, merges={"default": LEDGER}, settings={"batch_rows": 5})
    position = 0
    cities: list[str] = []
    with closing(bench.writer()) as writer:
        for _ in range(6):
            values = [chance.choice([event(chance.choice("abcdefghij")), BROKEN, None, b""]) for _ in range(9)]
            told = bench.commit(*completions(writer.write("default", messages(*values, start=position))))
            for block in told:
                if block.source is not None:
                    writer.committed(committed_block(block))
            position += len(values)
    cities = [row["city"] for row in bench.rows()]
    assert [row["offset"] for row in bench.rows()] == list(range(len(cities)))
    bench.certify()
    read = offsets_of_chain(bench)
    assert read == {0: position}


def offsets_of_chain(bench: Bench) -> dict[int, int]:
    found = bench.source().read_before
    assert found is not None
    return found.next
