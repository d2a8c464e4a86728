"""The poller's loop: which datasets are due, a few polls at a time, and what became of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from odf_common.catalog.records import PushSourceBinding
from odf_common.chain.state import DEFAULT_SOURCE_NAME
from odf_common.errors import OdfError, StoreUnavailableError
from odf_common.identity.did import DatasetId
from services.poller.fetched import UpToDate
from services.poller.lock import PollRunsError
from services.poller.poll import Outcome, Poller, PollWaitsError
from services.poller.schedule import next_poll
from services.poller.status import PollStatus, read_status, write_status

LOOK_EVERY_S = 1.0

_TOO_EARLY_S = 1.0
_NOT_ANSWERED_S = 5.0

_log = logging.getLogger("poller")


def now() -> datetime:
    """The clock's time."""
    return datetime.now(UTC)


@dataclass(slots=True)
class PollerService:
    """Polls what is due until told to stop. `look` is called by one thread, polls run in others."""

    poller: Poller
    clock: Callable[[], datetime] = now
    _known_since: dict[DatasetId, datetime] = field(default_factory=dict)
    _not_before: dict[DatasetId, datetime] = field(default_factory=dict)
    _running: dict[DatasetId, Future[None]] = field(default_factory=dict)

    def run(self, wait: Callable[[float], bool]) -> None:
        """`wait` waits so many seconds, and says whether to stop."""
        with ThreadPoolExecutor(self.poller.poller_settings.concurrency, thread_name_prefix="poll") as threads:
            while True:
                try:
                    self.look(threads)
                except StoreUnavailableError as error:
                    _log.warning("waiting: %s", error)
                if wait(LOOK_EVERY_S):
                    break
            threads.shutdown(cancel_futures=True)

    def look(self, threads: ThreadPoolExecutor) -> None:
        """Begin the polls that are due."""
        self._running = {each: future for each, future in self._running.items() if not future.done()}
        for binding in self._due():
            self._running[binding.dataset_id] = threads.submit(self.poll, binding.dataset_id)

    def _due(self) -> Iterator[PushSourceBinding]:
        moment = self.clock()
        scheduled = [each for each in self.poller.repository.catalog.push_sources() if _is_scheduled(each)]
        ids = {each.dataset_id for each in scheduled}
        self._known_since = {each: self._known_since.get(each, moment) for each in ids}
        self._not_before = {each: time for each, time in self._not_before.items() if each in ids}
        for binding in scheduled:
            if binding.dataset_id not in self._running and self._is_due(binding, moment):
                yield binding

    def _is_due(self, binding: PushSourceBinding, moment: datetime) -> bool:
        dataset_id = binding.dataset_id
        if moment < self._not_before.get(dataset_id, moment):
            return False
        last = read_status(self.poller.settings, dataset_id)
        due = next_poll(binding.settings, last, known_since=self._known_since[dataset_id])
        return due is not None and due <= moment

    def poll(self, dataset_id: DatasetId) -> None:
        """Poll one dataset, and note how that went. Fails for nothing that the dataset can be blamed for."""
        started = self.clock()
        last = read_status(self.poller.settings, dataset_id)
        try:
            entry = self.poller.repository.catalog.dataset(dataset_id)
            outcome = self.poller.poll(entry)
        except (PollWaitsError, PollRunsError):
            self._not_before[dataset_id] = self.clock() + timedelta(seconds=_TOO_EARLY_S)
            return
        except StoreUnavailableError as error:
            _log.warning("%s", error)
            self._not_before[dataset_id] = self.clock() + timedelta(seconds=_NOT_ANSWERED_S)
            return
        except OdfError as error:
            if self.poller.stopping():
                return
            _log.error("%s", error)
            status = self._failure(str(error), started, last)
        except Exception as error:
            _log.exception("dataset %s: this is a mistake of the poller", dataset_id)
            status = self._failure(f"unexpected {type(error).__name__}: the poller's log says more", started, last)
        else:
            status = status_of(outcome, started, self.clock())
            _log.info("%s: %s, %s", entry.alias, status.result, status.detail)
        write_status(self.poller.settings, dataset_id, status)

    def _failure(self, detail: str, started: datetime, last: PollStatus | None) -> PollStatus:
        failures = 1 + (0 if last is None else last.failures)
        return PollStatus(started=started, finished=self.clock(), result="failed", detail=detail, failures=failures)


def status_of(outcome: Outcome, started: datetime, finished: datetime) -> PollStatus:
    """The note of a poll that went well."""
    if isinstance(outcome, UpToDate):
        return PollStatus(started=started, finished=finished, result="up to date", detail=outcome.reason)
    detail = f"{outcome.size} bytes in {outcome.messages} messages"
    return PollStatus(started=started, finished=finished, result="sent", detail=detail, has_more=outcome.has_more)


def _is_scheduled(binding: PushSourceBinding) -> bool:
    settings = binding.settings
    return (
        binding.source_name == DEFAULT_SOURCE_NAME
        and settings.enabled
        and binding.problem is None
        and (settings.poll_every_s is not None or settings.poll_cron is not None)
    )
