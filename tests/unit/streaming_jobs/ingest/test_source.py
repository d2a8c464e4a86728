from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from odf_common.timestamp import Timestamp
from tests.unit.streaming_jobs.ingest.builders import Bench, binding_of

NOON = Timestamp.parse("2020-01-01T12:00:00Z")


@pytest.mark.parametrize(
    ("delay_s", "expected"),
    [(0.0, NOON), (0.25, NOON.plus_seconds(-0.25)), (3600.0, NOON.plus_seconds(-3600)), (1e12, None), (1e300, None)],
)
def test_the_watermark_stays_behind(tmp_path: Path, delay_s: float, expected: Timestamp | None) -> None:
    bench = Bench(tmp_path)
    source = replace(bench.source(), binding=binding_of("default", bench.dataset_id, watermark_delay_s=delay_s))
    assert source.watermark(NOON) == expected
    assert source.watermark(None) is None
