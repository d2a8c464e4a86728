from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.records import DatasetEntry
from odf_common.errors import StoreUnavailableError
from odf_common.repository.bindings import bind_source
from odf_common.repository.repository import Repository
from odf_common.settings import Settings
from services.poller.errors import FetchUnreachableError
from services.poller.fetched import UpToDate
from services.poller.lock import PollRunsError
from services.poller.poll import Outcome, Poller, PollWaitsError, Sent
from services.poller.service import PollerService
from services.poller.settings import PollerSettings
from services.poller.status import PollStatus, read_status, write_status
from services.poller.topic import Positions
from tests.streams import create_dataset

START = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
SENT = Sent(positions=Positions({0: 0}, {0: 1}), messages=1, size=5)


@dataclass
class ScriptedPoller:
    """Does what it is told, and remembers who was polled."""

    repository: Repository
    settings: Settings
    poller_settings: PollerSettings = field(default_factory=PollerSettings)
    outcomes: list[Outcome | Exception] = field(default_factory=list)
    polled: list[str] = field(default_factory=list)
    gate: threading.Event | None = None
    is_stopping: bool = False

    def stopping(self) -> bool:
        return self.is_stopping

    def poll(self, entry: DatasetEntry) -> Outcome:
        self.polled.append(str(entry.alias))
        if self.gate is not None:
            assert self.gate.wait(10)
        outcome = self.outcomes.pop(0) if self.outcomes else UpToDate("same")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@dataclass
class World:
    poller: ScriptedPoller
    service: PollerService
    moment: datetime = START

    def add(self, alias: str, **settings: Any) -> DatasetEntry:
        entry = create_dataset(self.poller.repository, alias).entry
        with self.poller.repository.catalog.begin() as transaction:
            binding = bind_source(transaction, entry.id, entry.alias, "default")
            changed = binding.settings.model_copy(update={"poll_every_s": 60.0} | settings)
            transaction.bind_push_source(replace(binding, settings=changed))
        return entry

    def look(self, after_s: float = 0) -> list[str]:
        """Who is polled at a moment."""
        self.moment += timedelta(seconds=after_s)
        self.poller.polled.clear()
        with ThreadPoolExecutor(2) as threads:
            self.service.look(threads)
        return sorted(self.poller.polled)

    def status(self, entry: DatasetEntry) -> PollStatus:
        found = read_status(self.poller.settings, entry.id)
        assert found is not None
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = Settings(data_dir=tmp_path)
    with Catalog.open(settings.catalog_url) as catalog:
        poller = ScriptedPoller(Repository.at(settings.repository_location, catalog), settings)
        made = World(poller, PollerService(cast(Poller, poller), clock=lambda: made.moment))
        yield made


def test_only_what_is_due_is_polled(world: World) -> None:
    world.add("a")
    world.add("by-hand", poll_every_s=None)
    world.add("off", enabled=False)
    world.add("nightly", poll_every_s=None, poll_cron="0 13 * * *")
    assert world.look() == ["a"]
    assert world.look(59) == []
    assert world.look(1) == ["a"]
    assert world.look(3600) == ["a", "nightly"]
    assert world.look() == []


def test_what_became_of_a_poll_is_noted(world: World) -> None:
    entry = world.add("a")
    world.poller.outcomes = [SENT, UpToDate("the server says so")]
    world.look()
    assert (world.status(entry).result, world.status(entry).detail) == ("sent", "5 bytes in 1 messages")
    world.look(60)
    assert (world.status(entry).result, world.status(entry).detail) == ("up to date", "the server says so")


def test_failures_are_noted_and_become_rare_until_one_goes_well(world: World) -> None:
    entry = world.add("a")
    failure = FetchUnreachableError("a: the server says 500")
    world.poller.outcomes = [failure, failure, failure, SENT]
    assert world.look() == ["a"]
    assert (world.status(entry).failures, world.status(entry).detail) == (1, "a: the server says 500")
    assert (world.look(14), world.look(1)) == ([], ["a"])
    assert (world.look(29), world.look(1)) == ([], ["a"])
    assert world.status(entry).failures == 3
    assert (world.look(59), world.look(1)) == ([], ["a"])
    assert (world.status(entry).failures, world.status(entry).result) == (0, "sent")


def test_a_mistake_of_the_poller_is_told_and_does_not_come_again_at_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    entry = world.add("a")
    world.poller.outcomes = [ZeroDivisionError("secret")]
    assert world.look() == ["a"]
    assert "ZeroDivisionError" in caplog.text
    assert (world.status(entry).result, world.status(entry).failures) == ("failed", 1)
    assert "ZeroDivisionError" in world.status(entry).detail
    assert (world.look(14), world.look(1)) == ([], ["a"])


def test_more_to_fetch_is_fetched_at_once(world: World) -> None:
    world.add("a")
    world.poller.outcomes = [replace(SENT, has_more=True), PollWaitsError("not yet"), SENT]
    assert world.look() == ["a"]
    assert world.look(0.1) == ["a"]  # the block of the first is not there
    assert world.look(0.5) == []
    assert world.look(0.5) == ["a"]
    assert world.look(1) == []


@pytest.mark.parametrize("error", [PollWaitsError("x"), PollRunsError("x"), StoreUnavailableError("x")])
def test_what_is_nobodys_fault_is_no_failure(world: World, error: Exception) -> None:
    entry = world.add("a")
    world.poller.outcomes = [error]
    assert world.look() == ["a"]
    assert read_status(world.poller.settings, entry.id) is None
    assert world.look(6) == ["a"]


def test_after_a_restart_the_schedule_goes_on(world: World) -> None:
    world.add("a", poll_every_s=3600)
    world.look()
    again = World(world.poller, PollerService(cast(Poller, world.poller), clock=lambda: again.moment), world.moment)
    assert again.look(60) == []
    assert again.look(3540) == ["a"]


def test_a_dataset_is_not_polled_while_it_is(world: World) -> None:
    world.add("a")
    world.poller.gate = threading.Event()
    with ThreadPoolExecutor(4) as threads:
        world.service.look(threads)
        world.moment += timedelta(seconds=1000)
        world.service.look(threads)
        world.poller.gate.set()
    assert world.poller.polled == ["a"]


def test_a_dataset_that_is_gone_is_no_reason_to_stop(world: World) -> None:
    entry = world.add("a")
    with world.poller.repository.catalog.begin() as transaction:
        transaction.delete_dataset(entry.id)
    world.service.poll(entry.id)
    assert world.look() == []


def test_it_runs_until_told_to_stop(world: World) -> None:
    entry = world.add("a")
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 3

    world.service.run(wait)
    assert world.status(entry).result == "up to date"


def test_a_stop_is_no_failure(world: World) -> None:
    entry = world.add("a")
    world.poller.is_stopping = True
    world.poller.outcomes = [FetchUnreachableError("the poller stops")]
    world.look()
    assert read_status(world.poller.settings, entry.id) is None


def test_a_broken_note_is_none(world: World) -> None:
    entry = world.add("a")
    write_status(world.poller.settings, entry.id, PollStatus(started=START, finished=START, result="sent", detail=""))
    path = next((world.poller.settings.data_dir / "polls").glob("*.json"))
    path.write_bytes(b"{")
    assert read_status(world.poller.settings, entry.id) is None
    assert world.look() == ["a"]
