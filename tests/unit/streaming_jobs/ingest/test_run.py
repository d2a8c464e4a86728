from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from odf_common.errors import StoreUnavailableError
from odf_common.messages.block_appended import AppendedBlock
from odf_common.messages.completion import Completion
from odf_common.metadata.events import AddData
from odf_common.metadata.sources import ReadStepNdJson
from odf_common.repository.appending import without_rows
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest import run as run_module
from streaming_jobs.ingest.run import MAX_IN_FLIGHT, ClosedError, DatasetRun
from streaming_jobs.ingest.source_query import SourceQuery
from streaming_jobs.ingest.writer import BatchWriter
from tests.unit.streaming_jobs.ingest.builders import LEDGER, SNAPSHOT, Bench, binding_of, event, messages

DEADLINE_S = 20.0


class PlayedQuery:
    """A query that is told by the test what happens."""

    def __init__(self, bench: Bench, name: str = "default") -> None:
        self.binding = binding_of(name, bench.dataset_id)
        self.is_running = True
        self.stopped = False

    def failure(self) -> str | None:
        return "boom"

    def stop(self) -> None:
        self.stopped = True


def eventually(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, merges={"default": LEDGER, "other": LEDGER})


@pytest.fixture
def run(bench: Bench) -> Iterator[DatasetRun]:
    run = DatasetRun(bench.open_writer, bench.sources())
    yield run
    run.close()
    assert not run._thread.is_alive()


def proposed(bench: Bench) -> list[Completion]:
    return [each for each in bench.messenger.sent if isinstance(each, Completion)]


def in_the_background(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def publish(run: DatasetRun, *cities: str, start: int = 0, source: str = "default") -> None:
    run.on_messages(source, messages(*map(event, cities), start=start))


def wait_for_proposals(bench: Bench, count: int) -> list[Completion]:
    eventually(lambda: len(proposed(bench)) >= count)
    return proposed(bench)


def tell(run: DatasetRun, blocks: list[AppendedBlock]) -> None:
    for block in blocks:
        run.on_block(block)


def in_flight(run: DatasetRun) -> int:
    return len(run._in_flight)


def test_batches_are_proposed_and_committed(bench: Bench, run: DatasetRun) -> None:
    publish(run, "a", "b")
    publish(run, "c", start=2)
    first, second = wait_for_proposals(bench, 2)
    assert run.proposed(first.id)
    tell(run, bench.commit(first))
    eventually(lambda: not run.proposed(first.id))
    assert run.proposed(second.id)
    tell(run, bench.commit(second))
    eventually(lambda: not in_flight(run))
    assert run.trouble() is None
    assert [row["city"] for row in bench.rows()] == ["a", "b", "c"]


def test_a_batch_without_messages_is_nothing(bench: Bench, run: DatasetRun) -> None:
    publish(run)
    publish(run, "a")
    assert len(wait_for_proposals(bench, 1)) == 1


def test_no_more_than_so_many_wait_for_their_commit(bench: Bench, run: DatasetRun) -> None:
    count = MAX_IN_FLIGHT + 3

    def publish_all() -> None:
        for number in range(count):
            publish(run, str(number), start=number)

    publishing = in_the_background(publish_all)
    wait_for_proposals(bench, MAX_IN_FLIGHT)
    publishing.join(0.5)
    assert publishing.is_alive()  # the queries are kept waiting
    assert in_flight(run) == len(proposed(bench)) == MAX_IN_FLIGHT
    for number in range(count):
        tell(run, bench.commit(wait_for_proposals(bench, number + 1)[number]))
    publishing.join(DEADLINE_S)
    assert [row["city"] for row in bench.rows()] == list(map(str, range(count)))
    bench.certify()


def test_a_slow_writer_keeps_its_queries_waiting(bench: Bench) -> None:
    may_write = threading.Event()

    def open_writer(_: Callable[[], bool]) -> BatchWriter:
        assert may_write.wait(DEADLINE_S)
        return bench.writer()

    run = DatasetRun(open_writer, bench.sources())

    def publish_all() -> None:
        for number in range(5):
            publish(run, str(number), start=number)

    publishing = in_the_background(publish_all)
    eventually(lambda: run._inbox.qsize() == run_module._MAX_READ_AHEAD + 1)
    publishing.join(0.3)
    assert run._inbox.qsize() == run_module._MAX_READ_AHEAD + 1
    may_write.set()
    wait_for_proposals(bench, 5)
    publishing.join(DEADLINE_S)
    run.close()


def test_closing_lets_waiting_queries_go(bench: Bench, run: DatasetRun) -> None:
    ended = threading.Event()

    def publish_without_end() -> None:
        number = 0
        while not ended.is_set():
            try:
                publish(run, str(number), start=number)
            except ClosedError:
                ended.set()
            number += 1

    in_the_background(publish_without_end)
    wait_for_proposals(bench, MAX_IN_FLIGHT)
    query = PlayedQuery(bench)
    run.add_query(cast(SourceQuery, query), max_messages=10)
    started = time.monotonic()
    run.close()
    assert time.monotonic() - started < 5
    assert ended.wait(DEADLINE_S)
    assert query.stopped


def test_sources_that_are_told_in_another_order(bench: Bench, run: DatasetRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches without rows of two sources may be committed in either order."""
    now = Timestamp.now()
    monkeypatch.setattr(Timestamp, "now", lambda: now)
    publish(run, "a")
    publish(run, "a", start=1)
    publish(run, "a", source="other")
    first, second, third = wait_for_proposals(bench, 3)
    tell(run, bench.commit(first, third, second))
    eventually(lambda: not in_flight(run))
    assert run.trouble() is None
    bench.certify()


def test_blocks_that_are_told_again_mean_nothing(bench: Bench, run: DatasetRun) -> None:
    publish(run, "a")
    publish(run, "b", start=1)
    first, second = wait_for_proposals(bench, 2)
    blocks = bench.commit(first)
    tell(run, blocks)
    tell(run, blocks)
    tell(run, bench.commit(second))
    tell(run, blocks)
    eventually(lambda: not in_flight(run))
    assert run.trouble() is None


def test_a_watermark_set_by_hand_is_no_batch(bench: Bench, run: DatasetRun) -> None:
    from odf_common.messages.appending import appended_block

    publish(run, "a")
    publish(run, "b", start=1)
    first, second = wait_for_proposals(bench, 2)
    tell(run, bench.commit(first))
    state = bench.chain.state()
    assert state.watermark is not None
    assert state.last_add_data is not None
    by_hand: AddData = without_rows(
        state, watermark=state.watermark.plus_seconds(1), source_state=state.last_add_data.source_state
    )
    bench.append(by_hand)
    newest = next(iter(bench.chain.blocks()))
    tell(run, [appended_block(bench.dataset_id, "cities", newest)])
    tell(run, bench.commit(second))
    eventually(lambda: not in_flight(run))
    assert run.trouble() is None


def test_a_batch_of_an_earlier_run_is_noticed(bench: Bench) -> None:
    """Such as one that was proposed right before a crash, and committed after the new start."""
    before = DatasetRun(bench.open_writer, bench.sources())
    publish(before, "a", "b", "c")
    (earlier,) = wait_for_proposals(bench, 1)
    before.close()
    after = DatasetRun(bench.open_writer, bench.sources())
    publish(after, "a")
    publish(after, "b", start=1)
    wait_for_proposals(bench, 3)
    tell(after, bench.commit(earlier))
    eventually(lambda: after.trouble() is not None)
    trouble = after.trouble()
    assert trouble is not None
    assert "before this start" in trouble.reason
    after.close()


def test_the_same_positions_in_a_batch_of_an_earlier_run_are_noticed(bench: Bench) -> None:
    """It may hold other rows, as queries may say `now()`: the key index must not believe that they are the own ones."""
    before = DatasetRun(bench.open_writer, bench.sources())
    publish(before, "a")
    (earlier,) = wait_for_proposals(bench, 1)
    before.close()
    eventually(lambda: Timestamp.now().truncated_to_ms() > earlier.system_time)
    after = DatasetRun(bench.open_writer, bench.sources())
    publish(after, "a")
    wait_for_proposals(bench, 2)
    tell(after, bench.commit(earlier))
    eventually(lambda: after.trouble() is not None)
    after.close()


def test_a_batch_is_known_before_it_is_sent(bench: Bench, run: DatasetRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its rejection could come first, and nobody would build it anew."""
    known: list[bool] = []
    monkeypatch.setattr(bench.messenger, "propose", lambda done: known.append(run.proposed(done.id)))
    publish(run, "a")
    eventually(lambda: bool(known))
    assert known == [True]


def test_a_query_that_stopped_is_trouble(bench: Bench, run: DatasetRun) -> None:
    query = PlayedQuery(bench)
    run.add_query(cast(SourceQuery, query), max_messages=10)
    assert run.trouble() is None
    query.is_running = False
    trouble = run.trouble()
    assert trouble is not None
    assert trouble.reason == "the query of source 'default' stopped: boom"


def test_records_that_do_not_fit_stop_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, merges={"default": LEDGER, "other": LEDGER}, read=ReadStepNdJson())
    run = DatasetRun(bench.open_writer, bench.sources())
    run.on_messages("other", messages(b'{"city":["no","key"]}', event("a")))
    (done,) = wait_for_proposals(bench, 1)
    tell(run, bench.commit(done))
    eventually(lambda: not in_flight(run))
    assert run.trouble() is None
    assert [row["city"] for row in bench.rows()] == ["a"]
    assert [letter.offset for letter in bench.messenger.letters] == [0]
    run.close()


def test_what_waits_for_its_commit_is_bounded_by_its_rows(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_MAX_ROWS_IN_FLIGHT", 3)
    run = DatasetRun(bench.open_writer, bench.sources())
    publish(run, "a", "b")
    publish(run, "c", "d", start=2)
    wait_for_proposals(bench, 2)
    publish(run, "e", start=4)
    eventually(run._inbox.empty)
    assert in_flight(run) == len(proposed(bench)) == 2
    tell(run, bench.commit(proposed(bench)[0]))
    wait_for_proposals(bench, 3)
    run.close()


def test_a_snapshot_waits_for_what_is_on_its_way(tmp_path: Path) -> None:
    bench = Bench(tmp_path, merges={"default": SNAPSHOT})
    run = DatasetRun(bench.open_writer, bench.sources())
    publish(run, "a", "b")  # each message is a snapshot
    (first,) = wait_for_proposals(bench, 1)
    publish(run, "c", start=2)
    eventually(run._inbox.empty)
    assert len(proposed(bench)) == 1
    tell(run, bench.commit(first))
    for number in (2, 3):
        tell(run, bench.commit(wait_for_proposals(bench, number)[-1]))
    assert [(row["op"], row["city"]) for row in bench.rows()] == [(0, "a"), (1, "a"), (0, "b"), (1, "b"), (0, "c")]
    bench.certify()
    run.close()


def test_a_writer_that_cannot_start_is_trouble_of_the_dataset(bench: Bench) -> None:
    def open_writer(_: Callable[[], bool]) -> BatchWriter:
        raise OSError("disk full")

    run = DatasetRun(open_writer, bench.sources())
    eventually(lambda: run.trouble() is not None)
    trouble = run.trouble()
    assert trouble is not None
    assert (trouble.source_name, trouble.reason) == (None, "disk full")
    run.close()


def test_messages_of_another_size_start_the_queries_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path, settings={"batch_bytes": 1 << 10})
    run = DatasetRun(bench.open_writer, bench.sources())
    run.add_query(cast(SourceQuery, PlayedQuery(bench)), max_messages=100)
    publish(run, *["x" * 100] * 50)
    trouble = run.trouble()
    assert trouble is not None
    assert "another size" in trouble.reason
    assert trouble.is_resize
    assert run.sizes["default"].bytes == len(event("x" * 100))
    run.close()


def test_a_failure_counts_more_than_another_size(tmp_path: Path) -> None:
    """Otherwise a query that always fails would be started anew without a pause."""
    bench = Bench(tmp_path, settings={"batch_bytes": 1 << 10})
    run = DatasetRun(bench.open_writer, bench.sources())
    query = PlayedQuery(bench)
    run.add_query(cast(SourceQuery, query), max_messages=100)
    publish(run, *["x" * 100] * 50)
    query.is_running = False
    trouble = run.trouble()
    assert trouble is not None
    assert trouble.reason.endswith("boom")
    assert not trouble.is_resize
    run.close()


def test_a_commit_that_is_never_told_is_trouble(bench: Bench, run: DatasetRun, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(run, "a")
    (first,) = wait_for_proposals(bench, 1)
    assert run.trouble() is None
    monkeypatch.setattr(run_module, "MAX_COMMIT_S", 0.0)
    eventually(lambda: run.trouble() is not None)
    trouble = run.trouble()
    assert trouble is not None
    assert "no commit for" in trouble.reason
    assert not trouble.is_resize
    tell(run, bench.commit(first))
    eventually(lambda: run.trouble() is None)
    assert run.waiting_s() == 0.0


def test_each_commit_that_is_told_gives_the_next_ones_time(bench: Bench, run: DatasetRun) -> None:
    publish(run, "a")
    publish(run, "b", start=1)
    first, _ = wait_for_proposals(bench, 2)
    long_ago = time.monotonic() - 1_000
    for place in range(2):
        run._in_flight[place] = replace(run._in_flight[place], since=long_ago)
    assert run.trouble() is not None
    tell(run, bench.commit(first))
    assert run.trouble() is None


def test_commits_that_are_told_while_the_writer_is_busy_count(
    bench: Bench, run: DatasetRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_bury = threading.Event()
    monkeypatch.setattr(bench.messenger, "bury", lambda *_, **__: may_bury.wait(DEADLINE_S))
    publish(run, "a")
    (first,) = wait_for_proposals(bench, 1)
    run.on_messages("default", messages(b"broken", start=1))
    assert run.waiting_s() > 0
    tell(run, bench.commit(first))
    assert run.waiting_s() == 0
    may_bury.set()


def test_a_run_that_is_over_gives_its_batch_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as dead letters that wait for a broker that is away."""
    burying = threading.Event()

    def bury(*_: object, is_closed: Callable[[], bool]) -> None:
        burying.set()
        eventually(is_closed)
        raise StoreUnavailableError("given up")

    monkeypatch.setattr(bench.messenger, "bury", bury)
    run = DatasetRun(lambda is_closed: bench.writer(is_closed=is_closed), bench.sources())
    run.on_messages("default", messages(b"broken"))
    assert burying.wait(DEADLINE_S)
    run.close()
    assert run.trouble() is None
    assert not bench.messenger.sent
