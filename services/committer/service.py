"""The committer's loop: read a group, commit it, tell everyone, and tidy up when there is time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from odf_common.catalog.records import Epoch
from odf_common.crash_points import crash_point
from odf_common.errors import StoreUnavailableError
from odf_common.messages.completion import Rejection
from odf_common.repository.repository import Repository
from services.committer import metrics
from services.committer.committer import Committer, Outcome
from services.committer.inbox import Arrivals, Inbox
from services.committer.messenger import Messenger, StoppedError
from services.committer.mirror import Mirror
from services.committer.outbox import Outbox
from services.committer.waiting_room import RoomLimits, WaitingRoom

PART = "committer"
"""The name of the epoch: one process at a time plays this part."""

_GROUP = 1000  # completions for one wait for the disk
_IDLE_WAIT_S = 0.2  # at most this long until blocks are told that other processes appended
_TIDY_WAIT_S = 0.03  # without a completion for so long, there is time to tidy up
_TIDY_AFTER_S = 1.0
_TIDY_SHARE_S = 0.02  # of files at once, as the next completion waits meanwhile
_REVIEW_AFTER_S = 1.0
_RETRY_S = 0.2

_log = logging.getLogger("committer")


class CommitterService:
    """One committer, which runs until `stopping` says so or another one takes over (FencedError)."""

    def __init__(
        self, repository: Repository, staging: Path, bootstrap_servers: str, *, stopping: Callable[[], bool]
    ) -> None:
        with repository.catalog.begin() as transaction:
            self.epoch: Epoch = transaction.begin_epoch(PART)
        self._stopping = stopping
        self._inbox = Inbox(bootstrap_servers)
        self._messenger = Messenger(bootstrap_servers, stopping=stopping)
        self._waiting = WaitingRoom(RoomLimits())
        self._committer = Committer(
            repository, staging, epoch=self.epoch, waiting=self._waiting, pause=self._pause_or_stop
        )
        self._outbox = Outbox(repository, epoch=self.epoch, tell=self._messenger.tell, wait=self._messenger.wait)
        self._mirror = Mirror(repository)
        self._tidied = self._reviewed = time.monotonic()

    def start(self) -> None:
        """Tell what the last committer did not get to tell, and begin to listen."""
        self._publish(Outcome())
        while True:
            try:
                return self._inbox.start()
            except StoreUnavailableError as error:
                _log.info("waiting for the broker: %s", error)
            self._pause_or_stop(_RETRY_S)

    def run(self) -> None:
        """Serve."""
        with suppress(StoppedError):
            while not self._stopping():
                self._turn()

    def finish(self) -> None:
        """Leave everything tidy; only for the committer that was not fenced."""
        self._tidy(time.monotonic(), share=float("inf"))
        self._inbox.close()

    def _turn(self) -> None:
        has_work = bool(self._mirror) or self._outbox.has_marks
        arrivals = self._inbox.read(
            wait=_TIDY_WAIT_S if has_work else _IDLE_WAIT_S, at_most=_GROUP, clock=time.monotonic()
        )
        now = time.monotonic()
        if arrivals.following:
            self._commit(arrivals, now)
        else:
            self._publish(Outcome())
        if self._waiting and now - self._reviewed >= _REVIEW_AFTER_S:
            self._reviewed = now
            self._commit(Arrivals(), now)
        if has_work and not arrivals.completions:
            self._tidy(now, share=_TIDY_SHARE_S)
        elif now - self._tidied >= _TIDY_AFTER_S:
            self._tidy(now, share=_TIDY_SHARE_S, older_than=now - _TIDY_AFTER_S)

    def _commit(self, arrivals: Arrivals, now: float) -> None:
        started = time.perf_counter()
        outcome = self._committer.handle(arrivals.completions, now=now)
        if outcome.blocks:
            metrics.COMMIT_SECONDS.observe(time.perf_counter() - started)
        self._reject([*arrivals.rejections, *outcome.rejections])
        self._publish(outcome)
        self._inbox.settle(arrivals)
        for chain in outcome.moved:
            self._mirror.lag(chain, now=now)
        self._count(arrivals, outcome)

    def _reject(self, rejections: Sequence[Rejection]) -> None:
        for answer in rejections:
            self._messenger.reject(answer)
            metrics.REJECTIONS.labels(answer.reason.value).inc()

    def _publish(self, outcome: Outcome) -> None:
        told = self._outbox.publish(outcome.blocks)
        if told:
            metrics.NOTIFICATIONS.inc(told)
            crash_point("committer.after-notify")

    def _count(self, arrivals: Arrivals, outcome: Outcome) -> None:
        metrics.COMPLETIONS.inc(len(arrivals.completions))
        metrics.MALFORMED.inc(arrivals.malformed)
        metrics.BLOCKS.inc(len(outcome.blocks))
        metrics.REPEATED.inc(outcome.repeated)
        metrics.WAITING.set(len(self._waiting))

    def _tidy(self, now: float, *, share: float, older_than: float = float("inf")) -> None:
        """Everything that may lag behind: marks in the journal, files of refs, positions in the topic."""
        self._outbox.mark()
        self._mirror.write(older_than=older_than, seconds=share)
        self._inbox.note(self._waiting)
        self._tidied = now

    def _pause_or_stop(self, seconds: float) -> None:
        time.sleep(seconds)
        if self._stopping():
            raise StoppedError
