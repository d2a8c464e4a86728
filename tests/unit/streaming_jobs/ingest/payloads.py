"""Payloads on their way through a writer, and the committer behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_common.messages.completion import Completion
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE, UploadedPayload
from odf_common.metadata.sources import MergeStrategy
from streaming_jobs.ingest.writer import BatchWriter
from tests.unit.streaming_jobs.ingest.builders import APPEND, Bench, committed_block, messages

CITY = {"content-type": UPLOAD_MEDIA_TYPE}


def bench_of(folder: Path, merge: MergeStrategy = APPEND, **more: Any) -> Bench:
    return Bench(folder, merges={"default": merge}, **more)


def write(bench: Bench, writer: BatchWriter, *tables: pa.Table) -> list[Completion]:
    """Write and commit, and tell the writer."""
    bench.topic += tables
    done = []
    for completion in writer.write("default", pa.concat_tables(tables)):
        assert completion is not None
        done.append(completion)
        for told in bench.commit(completion):
            # Only the block that covers positions is a batch of its own to the run.
            if told.source is not None and told.source.next != told.source.start:
                writer.committed(committed_block(told))
    return done


def upload(bench: Bench, *parts: bytes, start: int = 0, headers: dict[str, str] | None = None, **more: Any) -> pa.Table:
    """The message of an upload."""
    kept = bench.uploads.write(bench.dataset_id, parts)
    fields = {"name": kept.name, "hash": kept.hash, "size": kept.size} | more
    return messages(UploadedPayload(**fields).to_json(), start=start, headers=CITY | (headers or {}))
