"""What a fetch is given, and what it finds."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

from odf_common.identity.did import DatasetId
from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import PrepStep, ReadStep
from odf_common.timestamp import Timestamp
from services.poller.errors import FetchRefusedError, FetchUnreachableError, PollError
from services.poller.settings import PollerSettings
from services.poller.templates import Secrets

ETAG = "odf/etag"
LAST_MODIFIED = "odf/last-modified"
CONTENT_HASH = "odf-streams/content-hash"
"""The state of a source that tells neither: what was fetched, which is fetched again only on request."""


@dataclass(frozen=True, slots=True)
class UpToDate:
    """There is nothing new; `reason` says how that is known."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A payload in a file, read from its beginning."""

    file: BinaryIO
    state: FetchedState
    event_time: Timestamp | None = None
    """None: the time at which it is sent."""
    has_more: bool = False
    media_type: str | None = None
    """None: what the read step reads."""


@dataclass(frozen=True, slots=True)
class MessageRounds:
    """Messages as they come. Asking for the next round says that the one before is safe and may be forgotten."""

    rounds: Iterator[list[bytes]]


Found = UpToDate | Fetched | MessageRounds


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchJob:
    """What there is to know for a fetch, and where it may put things; all of that goes with the job."""

    dataset_id: DatasetId
    read: ReadStep
    prepare: tuple[PrepStep, ...] = ()
    settings: PollerSettings
    secrets: Secrets
    last: FetchedState | None = None
    """The state that the chain has."""
    force: bool = False
    folder: Path | None = None
    stopping: Callable[[], bool] = lambda: False
    until_done: ExitStack = field(default_factory=ExitStack)
    started: float = field(default_factory=time.monotonic)

    def file(self) -> IO[bytes]:
        """A new file without a name."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        return cast(IO[bytes], self.until_done.enter_context(tempfile.TemporaryFile(dir=self.folder)))

    def state_of(self, kind: str) -> str | None:
        """The value of the last state, if it is of this kind."""
        return self.last.value if self.last is not None and self.last.kind == kind else None

    def check_time(self) -> None:
        """Raise when the fetch takes too long or is no longer wanted."""
        if self.stopping():
            raise FetchUnreachableError("the poller stops")
        if time.monotonic() - self.started > self.settings.fetch_timeout_s:
            raise FetchUnreachableError(
                f"it took longer than {self.settings.fetch_timeout_s:g} s (ODF_POLLER_FETCH_TIMEOUT_S)"
            )

    def check_size(self, size: int) -> None:
        """Raise when more than the allowed bytes have come."""
        if size > self.settings.max_size:
            raise FetchRefusedError(f"it is larger than {self.settings.max_size} bytes (ODF_POLLER_MAX_SIZE)")

    def refuse_uncached(self) -> UpToDate | None:
        """A source that does not say whether it has changed is fetched once, and then on request only."""
        if self.state_of(CONTENT_HASH) is not None and not self.force:
            return UpToDate("the source does not tell whether it has changed: `odf pull --force` fetches it again")
        return None


def last_modified(time: Timestamp) -> FetchedState:
    """The state of a source that tells a time."""
    return FetchedState(kind=LAST_MODIFIED, value=str(time))


def checked_state(kind: str, value: str) -> FetchedState:
    """A state out of somebody else's words."""
    if len(value) > _MAX_STATE:
        raise PollError(f"the source's state has {len(value)} characters, {_MAX_STATE} are the most that is kept")
    return FetchedState(kind=kind, value=value)


_MAX_STATE = 4_000
