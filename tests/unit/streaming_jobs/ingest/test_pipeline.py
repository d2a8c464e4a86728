from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

import pytest

from odf_common.catalog.records import DatasetEntry
from streaming_jobs.ingest import pipeline as pipeline_module
from streaming_jobs.ingest.context import JobContext
from streaming_jobs.ingest.pipeline import DatasetPipeline
from streaming_jobs.ingest.run import DatasetRun, Trouble


class PlayedRun:
    def __init__(self, trouble: Trouble | None = None, waiting_s: float = 0.0) -> None:
        self.sizes = {"default": object()}
        self.sources: dict[str, object] = {}
        self._trouble, self._waiting_s = trouble, waiting_s
        self.is_closed = False

    def trouble(self) -> Trouble | None:
        return self._trouble

    def waiting_s(self) -> float:
        return self._waiting_s

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def pipeline() -> DatasetPipeline:
    context = SimpleNamespace(messenger=SimpleNamespace(failure=lambda _: None))
    entry = SimpleNamespace(id="id", alias="cities")
    return DatasetPipeline(cast(JobContext, context), cast(DatasetEntry, entry))


def play(pipeline: DatasetPipeline, run: PlayedRun) -> None:
    pipeline._run = cast(DatasetRun, run)
    pipeline.tick()


def test_another_size_is_no_failure(pipeline: DatasetPipeline) -> None:
    run = PlayedRun(Trouble("another size", is_resize=True))
    play(pipeline, run)
    assert run.is_closed
    assert pipeline._failures == 0


def test_failures_wait_longer_each_time(pipeline: DatasetPipeline) -> None:
    waits = []
    for _ in range(12):
        began = time.monotonic()
        play(pipeline, PlayedRun(Trouble("boom")))
        waits.append(round(pipeline._due - began))
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(pipeline_module._MAX_BACK_OFF_S, abs=5)


def test_a_run_whose_commits_are_not_told_is_not_well(pipeline: DatasetPipeline) -> None:
    """Otherwise it would be proposed anew without longer and longer pauses while the committer is down."""
    pipeline._failures = 3
    pipeline._started = time.monotonic() - 2 * pipeline_module._WELL_AFTER_S
    pipeline._topics_due = time.monotonic() + 1_000
    play(pipeline, PlayedRun(waiting_s=40))
    assert pipeline._failures == 3
    play(pipeline, PlayedRun())
    assert pipeline._failures == 0


def test_a_disk_that_is_full_stops_one_dataset_for_a_while(
    pipeline: DatasetPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: DatasetPipeline) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(DatasetPipeline, "_started_run", full)
    pipeline.tick()
    assert pipeline._run is None
    assert pipeline._failures == 1
