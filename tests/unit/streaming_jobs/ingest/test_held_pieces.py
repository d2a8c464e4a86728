from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from streaming_jobs.ingest.held_pieces import HeldPieces
from tests.unit.streaming_jobs.ingest.builders import messages


@pytest.mark.parametrize("in_memory", [1, 1 << 20])
def test_pieces_are_held_in_their_order(tmp_path: Path, in_memory: int) -> None:
    tables = [messages(b"x" * 100, start=number, headers={"odf-batch-id": "1"}) for number in range(5)]
    held = HeldPieces(tmp_path, in_memory=in_memory)
    for table in tables:
        held.add(table)
    assert held.size >= 500
    assert held.table() == pa.concat_tables(tables)
    held.close()
    assert list(tmp_path.iterdir()) == []


def test_a_slice_does_not_keep_its_batch(tmp_path: Path) -> None:
    held = HeldPieces(tmp_path)
    held.add(messages(*[b"x" * 1_000] * 1_000).slice(10, 1))
    assert held.table().get_total_buffer_size() < 10_000
    held.close()
