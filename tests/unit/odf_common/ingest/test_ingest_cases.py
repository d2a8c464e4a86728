"""What ingestion must make of input, tried out: the rows of every case of the facts."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from odf_common.chain.state import ChainState, next_block
from odf_common.identity.multihash import sha3_256
from odf_common.ingest.trial import Trial, source_of
from odf_common.timestamp import Timestamp
from tests.ingest_cases import CASES, Case, rows_of

_NOW = Timestamp.parse("2026-01-31T12:00:00Z")


def chain_of(case: Case) -> ChainState:
    chain = ChainState()
    for event in case.events:
        chain = chain.followed_by(next_block(chain, event, system_time=_NOW), sha3_256(b""))
    return chain


def without_spark(rows: pa.Table) -> pa.Table:
    """What the queries of the case with a preprocess step say."""
    large = rows.filter(pc.greater(rows["population"], 1))
    times = pa.array([datetime(2000, 1, 3, 12, tzinfo=UTC)] * large.num_rows, pa.timestamp("us", "UTC"))
    return pa.table(
        {"city": pc.utf8_upper(large["city"]), "double": pc.multiply(large["population"], 2), "event_time": times}
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_rows_are_as_they_must_be(case: Case) -> None:
    chain = chain_of(case)
    trial = Trial(chain, source_of(chain, None), preprocess=without_spark if case.preprocess is not None else None)
    rows, watermark = [], None
    for push in case.pushes:
        event_time = Timestamp.parse(push.event_time)
        taken = trial.take(io.BytesIO(push.data), event_time=event_time, system_time=_NOW, media_type=push.media_type)
        rows += [row for table in taken.rows for row in table.to_pylist()]
        watermark = taken.watermark
        assert [letter.code for letter in taken.letters] == list(push.dead_letters)
        assert taken.records + taken.derived == taken.count + taken.duplicates + len(taken.letters)
    assert rows_of(case, rows) == [tuple(row) for row in case.rows]
    if case.watermark is not None:
        assert watermark == Timestamp.parse(case.watermark)
