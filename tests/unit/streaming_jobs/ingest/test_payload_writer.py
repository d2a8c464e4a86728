"""What the writer makes of payloads: uploads, snapshots, pieces, event ids and polls."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odf_common.chain.check import check_dataset
from odf_common.identity.multihash import SHA2_256, Multihash
from odf_common.messages.completion import Completion
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE, FetchedState, PollNote
from odf_common.metadata.events import AddData
from odf_common.metadata.sources import MergeStrategy, ReadStepNdJson
from streaming_jobs.ingest.preprocess import PreprocessError
from tests.unit.streaming_jobs.ingest.builders import (
    APPEND,
    LEDGER,
    SNAPSHOT,
    UPSERT,
    Bench,
    committed_block,
    event,
    messages,
    offsets_of,
    with_query,
)
from tests.unit.streaming_jobs.ingest.payloads import bench_of, upload, write


def uploads_left(bench: Bench) -> int:
    return sum(1 for path in (bench.folder / "uploads").rglob("*") if path.is_file())


def lines(numbers: Iterable[int]) -> bytes:
    return b"".join(event(f"c{number}", population=number) + b"\n" for number in numbers)


def counts(bench: Bench) -> dict[str, int]:
    """What all blocks together say, which must add up."""
    bench.certify()
    check_dataset(bench.store.objects, bench.store.refs)
    found = {"messages": 0, "records": 0, "duplicates": 0, "dead_letters": 0, "derived": 0}
    for block in bench.chain.blocks():
        if isinstance(block.block.event, AddData):
            state = block.block.event.new_source_state
            assert state is not None
            offsets = KafkaOffsets.of_state(state)
            assert offsets is not None
            found = {name: value + getattr(offsets, name) for name, value in found.items()}
    return found


def cities(bench: Bench) -> list[str]:
    rows = bench.rows()
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    return [row["city"] for row in rows]


def test_an_upload_is_one_batch_in_several_slices(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, settings={"batch_bytes": 4 << 10, "batch_rows": 1})
    with closing(bench.writer()) as writer:
        done = write(bench, writer, messages(event("a")), upload(bench, lines(range(500)), start=1))
    assert len(done) == 2
    assert 2 < len(done[1].slices) < 10
    covered = [KafkaOffsets.of_state(e.new_source_state) for e in done[1].events if isinstance(e, AddData)]  # type: ignore[arg-type]
    assert {each.next[0] for each in covered[:-1] if each} == {1}
    assert offsets_of(done[1]).next == {0: 2}
    assert cities(bench) == ["a", *(f"c{number}" for number in range(500))]
    assert counts(bench) == {"messages": 2, "records": 501, "duplicates": 0, "dead_letters": 0, "derived": 0}
    assert uploads_left(bench) == 0


def test_an_upload_stays_until_its_batch_is_in_the_chain(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    with closing(bench.writer()) as writer:
        (done,) = writer.write("default", upload(bench, lines(range(3))))
        assert uploads_left(bench) == 1
        assert done is not None
        for told in bench.commit(done):
            if told.source is not None:
                writer.committed(committed_block(told))
    assert uploads_left(bench) == 0


def test_records_of_an_upload_that_cannot_be_read_are_dead_letters(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    with closing(bench.writer()) as writer:
        write(bench, writer, upload(bench, event("a") + b"\nbroken\n" + event("b") + b'\n{"population":"x"}\n'))
    assert cities(bench) == ["a", "b"]
    assert [(each.offset, each.index, each.data) for each in bench.messenger.letters] == [
        (0, 1, b"broken"),
        (0, 3, b'{"population":"x"}'),
    ]
    assert counts(bench) == {"messages": 1, "records": 4, "duplicates": 0, "dead_letters": 2, "derived": 0}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "f" * 32}, "UploadMissing"),
        ({"size": 3}, "UploadDamaged"),
        ({"hash": Multihash(SHA2_256, bytes(32))}, "UploadDamaged"),
        ({"size": 1 << 40}, "MessageTooLarge"),
        ({"media_type": "image/png"}, "WrongMediaType"),
    ],
)
@pytest.mark.parametrize("merge", [APPEND, LEDGER, SNAPSHOT, UPSERT])
def test_an_upload_that_is_not_what_it_should_be_is_one_dead_letter(
    tmp_path: Path, merge: MergeStrategy, change: dict[str, Any], code: str
) -> None:
    bench = bench_of(tmp_path, merge)
    bad = upload(bench, lines(range(300)), start=1, **change)
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(lines(range(300))), bad)
        write(bench, writer, messages(lines(range(301)), start=2))
    (letter,) = bench.messenger.letters
    assert (letter.code, letter.offset, letter.index, letter.data) == (code, 1, None, bad["value"][0].as_py())
    (sent,) = [each for each in bench.messenger.sent if not isinstance(each, Completion)]
    assert sent.content_type == UPLOAD_MEDIA_TYPE
    assert len(cities(bench)) == (601 if merge is APPEND else 301)
    assert uploads_left(bench) == 1
    assert [path.name for path in bench.staging.rglob("*.part")] == []
    counts(bench)


def test_what_stops_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """Keys that were proposed with the first slices must not be known afterwards."""
    read = ReadStepNdJson(ddl_schema=("city STRING", "population BIGINT"))
    bench = bench_of(tmp_path, LEDGER, read=read, settings={"batch_bytes": 4 << 10})
    good = json.dumps([{"city": f"c{number}"} for number in range(2_000)]).encode()
    with closing(bench.writer()) as writer:
        bad = upload(bench, good[:-9] + b"}}", media_type="application/json")
        write(bench, writer, bad)
        assert [letter.index for letter in bench.messenger.letters] == [None]
        write(bench, writer, upload(bench, good, start=1, media_type="application/json"))
    assert len(cities(bench)) == 2_000
    assert counts(bench)["dead_letters"] == 1


def test_an_upload_may_be_of_another_media_type(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    with closing(bench.writer()) as writer:
        table = upload(bench, b"2020-01-01T00:00:00Z,a,1\n,b,2\n", media_type="text/csv")
        csv = messages(b",c,3\n", start=1, headers={"content-type": "text/csv; charset=utf-8"})
        write(bench, writer, table, csv, messages(b",d,4\n", start=2, headers={"content-type": "image/png"}))
    assert sorted(cities(bench)) == ["a", "b", "c"]
    assert [(letter.offset, letter.code) for letter in bench.messenger.letters] == [(2, "WrongMediaType")]
    counts(bench)


def test_keys_of_a_payload_are_known_to_its_next_slice(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, UPSERT, settings={"batch_bytes": 4 << 10})
    payload = (
        lines(range(200))
        + lines(range(200))
        + b"".join(event(f"c{number}", population=-number) + b"\n" for number in range(200))
    )
    with closing(bench.writer()) as writer:
        (done,) = write(bench, writer, upload(bench, payload))
    assert len(done.slices) > 2
    latest = {row["city"]: row["population"] for row in bench.rows() if row["op"] in (0, 3)}
    assert latest == {f"c{number}": -number for number in range(200)}
    found = counts(bench)
    assert found["records"] == 600
    assert found["records"] + found["derived"] == len(bench.rows()) + found["duplicates"]


def test_a_snapshot_in_pieces_is_one_batch(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, SNAPSHOT)

    def piece(batch: str, index: int, city: str, start: int, count: int = 3) -> pa.Table:
        own = {"odf-batch-id": batch, "odf-batch-index": str(index), "odf-batch-count": str(count)}
        return messages(event(city), start=start, headers=own)

    with closing(bench.writer()) as writer:
        assert write(bench, writer, piece("1", 0, "c", 0), piece("1", 1, "a", 1)) == []
        (done,) = write(bench, writer, piece("1", 2, "b", 2))
        assert offsets_of(done).messages == 3
        # The next one breaks off: its pieces are dead letters, and what comes after counts.
        write(bench, writer, piece("2", 0, "x", 3), piece("3", 0, "a", 4, count=2), piece("3", 1, "c", 5, count=2))
    assert [(row["op"], row["city"]) for row in bench.rows()] == [(0, "a"), (0, "b"), (0, "c"), (1, "b")]
    (letter,) = [each for each in bench.messenger.sent if not isinstance(each, Completion)]
    assert (letter.record.code, letter.record.offset, letter.piece_of) == ("IncompleteBatch", 3, "2")
    assert counts(bench) == {"messages": 6, "records": 6, "duplicates": 2, "dead_letters": 1, "derived": 1}


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (event("a") + b"\n" + event("a"), "DuplicateKeysInSnapshot"),
        (event("a") + b'\n{"population":1}', "NullKey"),
        (event("a") + b"\nbroken", "InvalidJson"),
        (event("a") + b'\n{"city":"b","population":"x"}', "WrongType"),
    ],
)
@pytest.mark.parametrize("is_upload", [False, True])
def test_a_snapshot_is_taken_whole_or_not_at_all(tmp_path: Path, payload: bytes, code: str, is_upload: bool) -> None:
    bench = bench_of(tmp_path, SNAPSHOT)
    bad = upload(bench, payload, start=1) if is_upload else messages(payload, start=1)
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(lines(range(2))), bad)
        write(bench, writer, messages(lines(range(1, 3)), start=2))
    assert [(row["op"], row["city"]) for row in bench.rows()] == [(0, "c0"), (0, "c1"), (1, "c0"), (0, "c2")]
    (letter,) = bench.messenger.letters
    assert (letter.code, letter.index, letter.data) == (code, None, bad["value"][0].as_py())
    counts(bench)


def test_an_empty_snapshot_says_that_nothing_is_there(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, SNAPSHOT)
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(lines(range(2))), upload(bench, start=1))
    assert [(row["op"], row["city"]) for row in bench.rows()] == [(0, "c0"), (0, "c1"), (1, "c0"), (1, "c1")]
    counts(bench)


def test_without_columns_an_empty_snapshot_says_nothing(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, SNAPSHOT, read=ReadStepNdJson())
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(lines(range(2))), upload(bench, start=1))
    assert [row["op"] for row in bench.rows()] == [0, 0]
    counts(bench)


def test_an_event_id_counts_once_across_restarts(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    one = {"ce_id": "1", "ce_source": "/s"}
    with closing(bench.writer()) as writer:
        first, again = write(bench, writer, messages(lines(range(2)), headers=one)), []
        assert first[0].id
        again += write(bench, writer, messages(lines(range(2)), start=1, headers=one))
    (block, *_) = [each.hash for each in bench.chain.blocks() if isinstance(each.block.event, AddData)][::-1]
    with closing(bench.writer()) as writer:
        again += write(bench, writer, messages(lines(range(2)), start=2, headers=one))
    import shutil

    shutil.rmtree(bench.indexes)
    with closing(bench.writer()) as writer:
        again += write(bench, writer, messages(lines(range(2)), start=3, headers=one), messages(event("d"), start=4))
    assert cities(bench) == ["c0", "c1", "d"]
    repeats = [offsets_of(each).repeats for each in again]
    assert [(each.offset, each.first_offset, each.block) for some in repeats for each in some] == [
        (1, 0, block),
        (2, 0, block),
        (3, 0, block),
    ]
    assert counts(bench) == {"messages": 5, "records": 9, "duplicates": 6, "dead_letters": 0, "derived": 0}


def test_an_upload_that_is_named_twice_is_taken_once(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    reference = upload(bench, lines(range(3)), headers={"ce_id": "1"})
    again = reference.set_column(1, reference.schema.field(1), pa.array([1], pa.int64()))
    with closing(bench.writer()) as writer:
        write(bench, writer, reference, again)
    assert len(cities(bench)) == 3
    assert counts(bench) == {"messages": 2, "records": 4, "duplicates": 1, "dead_letters": 0, "derived": 0}


def poll(expected: str | None, fetched: str | None, payload: bytes, start: int) -> pa.Table:
    states = [None if text is None else FetchedState(kind="odf/etag", value=text) for text in (expected, fetched)]
    note = PollNote(expected=states[0], fetched=states[1])
    return messages(payload, start=start, headers={"odf-poll": note.to_json()})


def test_polls_build_on_what_the_chain_says(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, SNAPSHOT)
    with closing(bench.writer()) as writer:
        write(bench, writer, poll(None, "1", event("a"), 0), poll(None, "1", event("b"), 1))
    with closing(bench.writer()) as writer:
        done = write(bench, writer, poll(None, "x", event("c"), 2), poll("1", "2", event("d"), 3))
        done += write(bench, writer, messages(event("e"), start=4))
    assert [offsets_of(each).fetched for each in done] == [
        FetchedState(kind="odf/etag", value=text) for text in ("1", "2", "2")
    ]
    assert [(row["op"], row["city"]) for row in bench.rows()] == [(0, "a"), (1, "a"), (0, "d"), (1, "d"), (0, "e")]
    assert counts(bench)["messages"] == 5


def test_a_bad_message_among_many_costs_little(tmp_path: Path) -> None:
    """Columns that the dataset has otherwise: those messages are told apart, the others are one batch."""
    bench = bench_of(tmp_path, settings={"accept_new_columns": False}, read=ReadStepNdJson())
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(event("a", population=1)))
        values = [event(f"b{number}", population=number) for number in range(200)]
        values[17] = event("new", area=1.5)
        values[118] = event("new", area=2.5)
        done = write(bench, writer, messages(*values, start=1))
    assert len(done) == 1
    assert len(cities(bench)) == 199
    assert [(each.offset, each.code) for each in bench.messenger.letters] == [
        (18, "IncompatibleSchema"),
        (119, "IncompatibleSchema"),
    ]
    assert "area" in bench.messenger.letters[0].reason
    counts(bench)


def test_a_source_whose_columns_do_not_fit_buries_all(tmp_path: Path) -> None:
    bench = Bench(tmp_path, merges={"default": APPEND, "other": APPEND})
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(event("a")))
    from odf_common.metadata.events import AddPushSource

    narrowed = ReadStepNdJson(ddl_schema=("event_time TIMESTAMP", "city STRING", "population INT"))
    bench.append(AddPushSource(source_name="other", read=narrowed, merge=APPEND))
    with closing(bench.writer()) as writer:
        (done,) = writer.write("other", messages(*map(event, "abcdef")))
    assert done is not None
    assert offsets_of(done).dead_letters == 6
    assert "population" in bench.messenger.letters[0].reason


def test_a_query_sees_all_of_a_snapshot(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, SNAPSHOT, settings={"batch_bytes": 4 << 10})
    asked: list[int] = []

    def query(rows: pa.Table) -> pa.Table:
        asked.append(rows.num_rows)
        return rows.append_column("seen", pa.array([True] * rows.num_rows))

    table = upload(bench, lines(range(300)))
    with closing(bench.writer({"default": with_query(bench.source(), query)})) as writer:
        write(bench, writer, table)
    assert asked == [300]
    assert len(cities(bench)) == 300
    counts(bench)


def test_a_payload_that_a_query_fails_on_is_one_dead_letter(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)

    def query(rows: pa.Table) -> pa.Table:
        if "bad" in rows["city"].to_pylist():
            raise PreprocessError("the query failed: it is bad")
        return rows

    tables = upload(bench, event("a")), upload(bench, event("b") + b"\n" + event("bad"), start=1)
    with closing(bench.writer({"default": with_query(bench.source(), query)})) as writer:
        write(bench, writer, *tables)
    assert cities(bench) == ["a"]
    assert [(each.offset, each.code) for each in bench.messenger.letters] == [(1, "PreprocessFailed")]
    counts(bench)


def test_each_part_of_a_correction_is_counted_in_its_slice(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, SNAPSHOT, settings={"batch_bytes": 4 << 10})
    with closing(bench.writer()) as writer:
        write(bench, writer, upload(bench, lines(range(2_000))))
        changed = b"".join(event(f"c{number}", population=-1) + b"\n" for number in range(1_000, 3_000))
        write(bench, writer, upload(bench, changed, start=1))
    operations = [row["op"] for row in bench.rows()]
    assert [operations.count(op) for op in range(4)] == [3_000, 1_000, 1_000, 1_000]
    assert counts(bench) == {"messages": 2, "records": 4_000, "duplicates": 0, "dead_letters": 0, "derived": 2_000}
