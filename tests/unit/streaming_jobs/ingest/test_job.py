from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from streaming_jobs.ingest.context import JobContext
from streaming_jobs.ingest.events import Events
from streaming_jobs.ingest.job import IngestJob
from streaming_jobs.ingest.messenger import BrokenProducerError


class PlayedPipeline:
    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def tick(self) -> None:
        self._calls.append("tick")

    def end(self) -> None:
        self._calls.append("end")

    def stop(self) -> None:
        self._calls.append("stop")


class PlayedMessenger:
    is_broken = False

    def check(self) -> None:
        if self.is_broken:
            raise BrokenProducerError("broken")


@pytest.fixture
def messenger() -> PlayedMessenger:
    return PlayedMessenger()


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def job(messenger: PlayedMessenger, calls: list[str]) -> IngestJob:
    context = SimpleNamespace(messenger=messenger)
    job = IngestJob(cast(JobContext, context), cast(Events, SimpleNamespace(poll=lambda _: [])))
    job._bindings_due = job._datasets_due = float("inf")
    job._pipelines = {name: PlayedPipeline(calls) for name in "ab"}  # type: ignore[misc]
    return job


def test_being_told_to_stop_is_noticed_between_datasets(job: IngestJob, calls: list[str]) -> None:
    job.run(lambda: "tick" in calls)
    assert calls == ["tick", "end", "end", "stop", "stop"]


def test_a_broken_producer_ends_the_process(job: IngestJob, messenger: PlayedMessenger, calls: list[str]) -> None:
    messenger.is_broken = True
    with pytest.raises(BrokenProducerError):
        job.run(lambda: False)
    assert calls == ["end", "end", "stop", "stop"]
