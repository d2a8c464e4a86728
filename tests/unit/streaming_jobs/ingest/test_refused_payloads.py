"""Payloads that are not taken, or hardly, and what may follow them."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from odf_common.messages.payload import UploadedPayload
from tests.unit.streaming_jobs.ingest.builders import SNAPSHOT, event, messages, offsets_of
from tests.unit.streaming_jobs.ingest.payloads import CITY, bench_of, upload, write

ID = {"ce_id": "x", "ce_source": "/s"}


@pytest.mark.parametrize("is_lost", [False, True])
def test_pieces_that_were_given_up_leave_their_id_to_those_sent_again(tmp_path: Path, is_lost: bool) -> None:
    bench = bench_of(tmp_path)
    piece = {"odf-batch-id": "b", "odf-batch-index": "0", "odf-batch-count": "2"}
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(event("a"), headers=ID | piece), messages(event("z"), start=1))
    if is_lost:
        shutil.rmtree(bench.indexes)
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(event("a"), start=2, headers=ID))
    assert [row["city"] for row in bench.rows()] == ["z", "a"]


@pytest.mark.parametrize("when", ["at once", "later", "after a loss"])
def test_a_refused_upload_leaves_its_id_to_the_next_one(tmp_path: Path, when: str) -> None:
    bench = bench_of(tmp_path)
    damaged = upload(bench, event("a"), headers=ID, size=99)
    sent_again = upload(bench, event("a"), headers=ID, start=1)
    with closing(bench.writer()) as writer:
        write(bench, writer, damaged, *([sent_again] if when == "at once" else []))
    if when == "after a loss":
        shutil.rmtree(bench.indexes)
    with closing(bench.writer()) as writer:
        if when != "at once":
            write(bench, writer, sent_again)
        (done,) = write(bench, writer, upload(bench, event("a"), headers=ID, start=2))
    assert [row["city"] for row in bench.rows()] == ["a"]
    assert [each.first_offset for each in offsets_of(done).repeats] == [1]


def test_an_upload_fits_into_one_completion_however_small_batches_are(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, settings={"batch_bytes": 1_024, "batch_rows": 1})
    parts = upload(bench, *[b"\n" * 1_000] * 1_500, event("a"))
    with closing(bench.writer()) as writer:
        (done,) = write(bench, writer, parts)
    assert len(done.events) < 2_000
    assert len(bench.rows()) == 1


def test_pieces_of_which_too_much_cannot_be_read_are_refused_as_a_whole(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    sent = [
        messages(b"x\n" * 60_000, start=index, headers=_piece(index, 2)) for index in range(2)
    ]  # as dead letters of their own they would all be in memory
    with closing(bench.writer()) as writer:
        (done,) = write(bench, writer, *sent)
    assert offsets_of(done).dead_letters == 2
    assert [letter.code for letter in bench.messenger.letters] == ["InvalidPayload"] * 2


def _piece(index: int, count: int) -> dict[str, str]:
    return {"odf-batch-id": "b", "odf-batch-index": str(index), "odf-batch-count": str(count)}


def test_what_is_no_file_is_no_upload(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    kept = bench.uploads.write(bench.dataset_id, [b"x"])
    path = bench.uploads.path(bench.dataset_id, kept.name)
    path.unlink()
    os.mkfifo(path)  # whoever opens it waits for ever
    reference = UploadedPayload(name=kept.name, hash=kept.hash, size=0)
    with closing(bench.writer()) as writer:
        write(bench, writer, messages(reference.to_json(), headers=CITY))
    assert [letter.code for letter in bench.messenger.letters] == ["UploadDamaged"]


def test_an_empty_snapshot_of_known_columns_brings_the_schema(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, SNAPSHOT)
    with closing(bench.writer()) as writer:
        (done,) = write(bench, writer, messages(b""))
    assert [each.kind for each in done.events] == ["SetDataSchema", "AddData"]
