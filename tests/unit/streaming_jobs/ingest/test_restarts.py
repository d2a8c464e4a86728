"""Whatever is lost between proposal and commit, and wherever messages are cut: the rows are the same."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odf_common.chain.check import check_dataset
from odf_common.messages.completion import Completion
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE, UploadedPayload
from odf_common.metadata.sources import MergeStrategy
from streaming_jobs.ingest.units import ends_of
from tests.unit.streaming_jobs.ingest.builders import (
    APPEND,
    LEDGER,
    SNAPSHOT,
    UPSERT,
    Bench,
    committed_block,
    event,
    messages,
)

pytestmark = pytest.mark.slow

PARTITIONS = 2


def published(bench: Bench, chance: random.Random) -> list[pa.Table]:
    """One message each: plain ones, uploads, pieces, repeated ids, broken ones."""
    sent: list[pa.Table] = []
    ends = [0] * PARTITIONS

    def send(value: bytes, headers: dict[str, str] | None = None, partition: int = 0) -> None:
        sent.append(messages(value, start=ends[partition], partition=partition, headers=headers))
        ends[partition] += 1

    def payload() -> bytes:
        chosen = chance.sample("abcdefgh", chance.randint(0, 5))
        return b"".join(event(city, population=chance.randint(0, 2)) + b"\n" for city in chosen) or b"\n"

    for number in range(14):
        partition = chance.randrange(PARTITIONS)
        match chance.choice(["plain", "plain", "id", "upload", "lost", "pieces", "broken", "cut off"]):
            case "plain":
                send(payload(), partition=partition)
            case "id":
                send(payload(), {"ce_id": str(chance.randint(0, 2)), "ce_source": "/s"}, partition)
            case "upload" | "lost" as kind:
                kept = bench.uploads.write(bench.dataset_id, [payload()])
                size = kept.size + (kind == "lost")
                reference = UploadedPayload(name=kept.name, hash=kept.hash, size=size)
                send(reference.to_json(), {"content-type": UPLOAD_MEDIA_TYPE}, partition)
            case "pieces":
                for index in range(2):
                    own = {"odf-batch-id": str(number), "odf-batch-index": str(index), "odf-batch-count": "3"}
                    send(event(f"{number}-{index}"), own, partition)
            case "broken":
                send(b"broken", partition=partition)
            case "cut off":
                own = {"odf-batch-id": str(number), "odf-batch-index": "0", "odf-batch-count": "2"}
                send(event("x"), own, partition)
    return sent


def read_on(bench: Bench, sent: list[pa.Table], chance: random.Random, *, may_crash: bool) -> None:
    """One run: from where the chain is to the end of the topic, or to a crash."""
    read = bench.source().read_before
    positions = read.next if read else {}
    left = [table for table in sent if table["offset"][0].as_py() >= positions.get(table["partition"][0].as_py(), 0)]
    with closing(bench.writer()) as writer:
        while left:
            count = chance.randint(1, 6) if may_crash else len(left)
            batch = sorted(left[:count], key=lambda table: table["partition"][0].as_py())
            left = left[count:]
            waiting: list[Completion] = []
            for done in writer.write("default", pa.concat_tables(batch)):
                if may_crash and chance.random() < 0.15:
                    return  # proposed, not committed
                if done is not None:
                    waiting.append(done)
                if done is None or chance.random() < 0.7 or not may_crash:
                    commit(bench, writer, waiting)
            commit(bench, writer, waiting)


def commit(bench: Bench, writer: Any, waiting: list[Completion]) -> None:
    for told in bench.commit(*waiting):
        if told.source is not None and told.source.next != told.source.start:
            writer.committed(committed_block(told))
    waiting.clear()


def is_read(bench: Bench, sent: list[pa.Table]) -> bool:
    """Pieces of payloads that are not complete stay unread."""
    read = bench.source().read_before
    ends = ends_of(pa.concat_tables(sent))
    return read is not None and all(read.next.get(partition, 0) >= end - 2 for partition, end in ends.items())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("merge", [APPEND, LEDGER, UPSERT, SNAPSHOT])
def test_any_crash_gives_the_same_rows(tmp_path: Path, merge: MergeStrategy, seed: int) -> None:
    rows, letters = [], []
    for name, may_crash in (("calm", False), ("crashing", True)):
        bench = Bench(tmp_path / name, merges={"default": merge}, settings={"batch_rows": 2, "batch_bytes": 1 << 10})
        chance = random.Random(seed)
        bench.topic = sorted(published(bench, chance), key=lambda table: table["partition"][0].as_py())
        for _ in range(30):
            read_on(bench, bench.topic, chance, may_crash=may_crash)
            if not may_crash:
                break
        read_on(bench, bench.topic, chance, may_crash=False)
        assert is_read(bench, bench.topic)
        bench.certify()
        check_dataset(bench.store.objects, bench.store.refs)
        data = [
            {key: value for key, value in row.items() if key not in ("offset", "system_time")} for row in bench.rows()
        ]
        rows.append(data if merge is SNAPSHOT else sorted(map(str, data)))
        letters.append({(each.partition, each.offset, each.index): each.code for each in bench.messenger.letters})
    if merge is not UPSERT:  # of several upserts in one batch only the last one counts
        assert rows[0] == rows[1]
    assert letters[0] == letters[1]
