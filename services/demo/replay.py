"""The replay: a publisher sends, and the notifications say what became of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from odf_common.errors import StoreUnavailableError
from services.demo import recordings
from services.demo.publisher import Publisher
from services.demo.tally import Tally

if TYPE_CHECKING:
    from odf_common.messages.block_appended import AppendedBlock
    from services.cli.block_topic import BlockFeed
    from services.demo.recordings import Recording
    from services.demo.screen import Screen
    from services.demo.targets import Target

_STUCK_AFTER_S = 120.0  # without a new block while events wait for one
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is replayed, and how."""

    events: int | None = None
    """How many events of both datasets together; all that are left without it."""
    rate: float = 2_000.0
    """Events per second; 0 is as fast as the broker takes them."""
    ends: bool = False
    """Whether to stop when all is in blocks, instead of on Ctrl-C."""


class Replay:
    """One publisher thread that sends; the thread that calls `run` listens. Nothing else may be on its way.

    The first event of each dataset goes ahead, and the others follow when blocks hold those: the queries of the ingest
    job are at work then, and the latencies are those of a running system. The first ones count too.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        sources: Sequence[Recording],
        start: Sequence[int],
        options: Options,
        *,
        servers: str,
    ) -> None:
        self.tallies = [
            Tally(base=base, first_block=target.length()) for target, base in zip(targets, start, strict=True)
        ]
        left = sum(max(len(each) - base, 0) for each, base in zip(sources, start, strict=True))
        self.wanted = left if options.events is None else min(options.events, left)
        self._targets = targets
        self._ends = options.ends
        self._by_id = {each.dataset.entry.id: tally for each, tally in zip(targets, self.tallies, strict=True)}
        self._servers = servers
        self._sources = sources
        self._start = start
        self._rate = options.rate

    def blocks(self) -> int:
        """By how many blocks the chains have grown."""
        return sum(
            target.length() - tally.first_block for target, tally in zip(self._targets, self.tallies, strict=True)
        )

    def run(self, feed: BlockFeed, screen: Screen, stopping: threading.Event) -> float:
        """Replay until `stopping`, or until all is in blocks; returns the seconds from first event to last block."""
        began = ended = time.monotonic()
        for events in (self._first_events(), self._other_events()):
            if stopping.is_set():
                break
            publisher = self._publisher(events)
            publisher.start()
            try:
                ended = self._listen_to_the_last(publisher, feed, screen, stopping)
            finally:
                publisher.stop()
        if not self._ends and not stopping.is_set():
            self._listen_on(feed, screen, stopping)
        return ended - began

    def _first_events(self) -> Iterator[tuple[int, bytes]]:
        firsts = zip(self._sources, self._start, strict=True)
        for which, (source, start) in islice(enumerate(firsts), self.wanted):
            for _, value in islice(source.events(start), 1):
                yield which, value

    def _other_events(self) -> Iterator[tuple[int, bytes]]:
        sent = [len(tally.handed_over) for tally in self.tallies]
        start = [base + count for base, count in zip(self._start, sent, strict=True)]
        yield from islice(recordings.merged(self._sources, start), self.wanted - sum(sent))

    def _publisher(self, events: Iterator[tuple[int, bytes]]) -> Publisher:
        return Publisher(self._servers, [each.topic for each in self._targets], self.tallies, events, rate=self._rate)

    def _listen_to_the_last(
        self, publisher: Publisher, feed: BlockFeed, screen: Screen, stopping: threading.Event
    ) -> float:
        """Until every event is in a block; returns when the last of them was told."""
        news = time.monotonic()
        while not stopping.is_set() and (publisher.is_alive() or any(each.lag for each in self.tallies)):
            if self._hear(feed) or not any(each.lag for each in self.tallies):
                news = time.monotonic()
            elif time.monotonic() - news > _STUCK_AFTER_S:
                raise StoreUnavailableError(self._stuck())
            screen.replay(self._aliases, self.tallies, self._progress())
        if publisher.error:
            raise publisher.error
        return news

    def _listen_on(self, feed: BlockFeed, screen: Screen, stopping: threading.Event) -> None:
        """Others may publish; show what comes until it is time to stop."""
        state = "all events are in blocks; Ctrl-C stops"
        screen.replay(self._aliases, self.tallies, state, force=True)
        while not stopping.is_set():
            if self._hear(feed) or screen.is_terminal:
                screen.replay(self._aliases, self.tallies, state)

    def _hear(self, feed: BlockFeed) -> Sequence[AppendedBlock]:
        blocks = feed.poll(_POLL_S)
        at = time.monotonic()
        for block in blocks:
            if (tally := self._by_id.get(block.dataset_id)) is not None:
                tally.tell(block, at)
        return blocks

    def _progress(self) -> str:
        done = sum(each.published for each in self.tallies)
        return f"{done / self.wanted:.0%} of {self.wanted:,} events" if self.wanted else "nothing to replay"

    def _stuck(self) -> str:
        lags = ", ".join(f"{alias} {tally.lag:,}" for alias, tally in zip(self._aliases, self.tallies, strict=True))
        return (
            f"no block came for {_STUCK_AFTER_S:.0f} s while events waited ({lags}); "
            "`odf doctor DATASET` says where it is stuck"
        )

    @property
    def _aliases(self) -> list[str]:
        return [each.alias for each in self._targets]
