"""One run of a dataset: its queries and the thread that writes their batches, from a start to the next."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from odf_common.messages.kafka_offsets import KafkaOffsets, reaches, same_positions
from streaming_jobs.ingest.batch_size import MessageSize, needs_another_size
from streaming_jobs.ingest.source import CommittedBlock
from streaming_jobs.ingest.source_query import SourceQuery

if TYPE_CHECKING:
    from odf_common.messages.block_appended import AppendedBlock
    from odf_common.messages.completion import Completion
    from odf_common.timestamp import Timestamp
    from streaming_jobs.ingest.source import Source
    from streaming_jobs.ingest.writer import BatchWriter

MAX_IN_FLIGHT = 16
"""Batches that may wait for their commit; they lie on the disk, not in memory."""

MAX_COMMIT_S = 60.0
"""A batch whose commit was not told for so long is proposed anew: its completion or the answer to it may be lost."""

_MAX_ROWS_IN_FLIGHT = 2_000_000
"""Of several batches; a single one may have more. What waits for its commit takes memory with each of its keys."""

_MAX_READ_AHEAD = 1
"""Batches that may wait in memory, beside the one being written."""

_log = structlog.get_logger(__name__)


class ClosedError(Exception):
    """The run is over; its queries are to stop."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a run cannot go on. With a source: it alone is to blame, as its records do not fit the dataset."""

    reason: str
    error: BaseException | None = None
    source_name: str | None = None
    is_resize: bool = False
    """Nothing went wrong: batches are to take another number of messages."""


@dataclass(frozen=True, slots=True)
class _Messages:
    source_name: str
    messages: pa.Table


@dataclass(frozen=True, slots=True)
class _InFlight:
    completion_id: str
    system_time: Timestamp
    source_name: str
    next: Mapping[int, int]
    rows: int
    since: float


@dataclass(frozen=True, slots=True)
class _Told:
    """The last that the main thread heard of a source; the writer takes note of it after the batch it is at."""

    time: float
    next: Mapping[int, int]


class _Stop:
    pass


OpenWriter = Callable[[Callable[[], bool]], "BatchWriter"]
"""Opens the writer of a run; it is given a function that tells whether the run is over."""


class DatasetRun:
    """Started once, closed once. Blocks and rejections are told to it by the job's main thread."""

    def __init__(self, open_writer: OpenWriter, sources: Mapping[str, Source]) -> None:
        self.sources = dict(sources)
        self.sizes: dict[str, MessageSize] = {}
        self._queries: dict[str, SourceQuery] = {}
        self._max_messages: dict[str, int] = {}
        self._trouble: Trouble | None = None
        self._at: str | None = None
        self._closed = threading.Event()
        self._inbox: SimpleQueue[_Messages | CommittedBlock | _Stop] = SimpleQueue()
        self._slots = threading.BoundedSemaphore(_MAX_READ_AHEAD + 1)
        self._in_flight: deque[_InFlight] = deque()
        self._told: dict[str, _Told] = {}
        self._committed_next: dict[str, Mapping[int, int]] = {
            name: source.read_before.next for name, source in sources.items() if source.read_before
        }
        self._thread = threading.Thread(target=self._write_batches, args=(open_writer,), name="writer", daemon=True)
        self._thread.start()

    def add_query(self, query: SourceQuery, *, max_messages: int) -> None:
        """Take a running query over."""
        self._queries[query.binding.source_name] = query
        self._max_messages[query.binding.source_name] = max_messages

    def on_messages(self, source_name: str, messages: pa.Table) -> None:
        """Take a batch; waits while there is enough to do. ClosedError when the run is over."""
        if not messages.num_rows:
            return
        while not self._slots.acquire(timeout=0.2):
            if self._closed.is_set():
                raise ClosedError
        self._inbox.put(_Messages(source_name, messages))
        self._measure(source_name, messages["value"])

    def on_block(self, block: AppendedBlock) -> None:
        """Take note of a block of this dataset."""
        if block.source is not None:
            self._told[block.source.name] = _Told(time.monotonic(), block.source.next)
            end = None if block.offset_interval is None else block.offset_interval.end + 1
            self._inbox.put(
                CommittedBlock(
                    source_name=block.source.name,
                    next=block.source.next,
                    system_time=block.system_time,
                    block_hash=block.block_hash,
                    next_offset=end,
                    watermark=block.watermark,
                )
            )

    def proposed(self, completion_id: str) -> bool:
        """Whether a completion is one of those that wait for their commit."""
        return any(batch.completion_id == completion_id for batch in list(self._in_flight))

    def proposed_at(self, system_time: Timestamp) -> bool:
        """Whether one of the completions that wait for their commit asks for blocks of this time."""
        return any(batch.system_time == system_time for batch in list(self._in_flight))

    def trouble(self) -> Trouble | None:
        """Why the run cannot go on; None if all is well."""
        failure = self._trouble or self._stopped_query() or self._overdue()
        if failure is None and self.sizes:
            return Trouble("messages have another size: batches take another number of them", is_resize=True)
        return failure

    def waiting_s(self) -> float:
        """For how long nothing was heard of a source's batches that wait for their commit; 0 if none do."""
        now = time.monotonic()
        nothing = _Told(0.0, {})
        waiting = ((batch, self._told.get(batch.source_name, nothing)) for batch in list(self._in_flight))
        return max(
            (now - max(batch.since, told.time) for batch, told in waiting if not reaches(told.next, batch.next)),
            default=0.0,
        )

    def end(self) -> None:
        """Let the writer stop as soon as it can, without waiting for it."""
        self._closed.set()
        self._inbox.put(_Stop())

    def close(self) -> None:
        """Stop the queries and the writer; what waits is dropped, as it is read again from the topics."""
        self.end()
        for query in self._queries.values():
            query.stop()
        self._thread.join()

    def _stopped_query(self) -> Trouble | None:
        for name, query in self._queries.items():
            if not query.is_running:
                return Trouble(f"the query of source {name!r} stopped: {query.failure() or 'no reason given'}")
        return None

    def _overdue(self) -> Trouble | None:
        waiting = self.waiting_s()
        if waiting <= MAX_COMMIT_S:
            return None
        return Trouble(f"no commit for {waiting:.0f} s, is the committer running? The batches are proposed anew")

    def _measure(self, source_name: str, values: pa.ChunkedArray) -> None:
        settings = self.sources[source_name].binding.settings
        if needs_another_size(values, self._max_messages.get(source_name, settings.batch_rows), settings):
            size = MessageSize.of(values)
            assert size is not None
            self.sizes[source_name] = size

    def _write_batches(self, open_writer: OpenWriter) -> None:
        try:
            writer = open_writer(self._closed.is_set)
            try:
                self._serve(writer)
            finally:
                writer.close()
        except Exception as error:
            if self._closed.is_set():
                _log.info("batch given up", source=self._at, reason=str(error))
                return
            _log.exception("writing batches failed", source=self._at)
            self._trouble = Trouble(str(error), error, self._at)

    def _serve(self, writer: BatchWriter) -> None:
        waiting: deque[_Messages] = deque()
        writing: Iterator[Completion | None] | None = None
        must_wait = False
        while not self._closed.is_set():
            if writing is None and waiting:
                batch = waiting.popleft()
                self._at = batch.source_name
                writing = writer.write(batch.source_name, batch.messages, self._announce)
            can_write = writing is not None and not must_wait and self._has_room()
            event = self._next_event(wait=not can_write)
            match event:
                case _Messages():
                    waiting.append(event)
                case CommittedBlock():
                    self._committed(writer, event)
                    must_wait = False
                case _Stop():
                    return
                case None if writing is not None:
                    try:
                        must_wait = next(writing) is None
                    except StopIteration:
                        writing = None
                        self._slots.release()

    def _next_event(self, *, wait: bool) -> _Messages | CommittedBlock | _Stop | None:
        try:
            return self._inbox.get(block=wait)
        except Empty:
            return None

    def _has_room(self) -> bool:
        rows = sum(batch.rows for batch in self._in_flight)
        return len(self._in_flight) < MAX_IN_FLIGHT and (rows < _MAX_ROWS_IN_FLIGHT)

    def _announce(self, completion: Completion) -> None:
        state = completion.add_data.new_source_state
        assert state is not None
        covered = KafkaOffsets.of_state(state)
        assert covered is not None
        intervals = [each.offset_interval for each in completion.slices]
        self._in_flight.append(
            _InFlight(
                completion_id=completion.id,
                system_time=completion.system_time,
                source_name=state.source_name,
                next=covered.next,
                rows=sum(each.end - each.start + 1 for each in intervals),
                since=time.monotonic(),
            )
        )

    def _committed(self, writer: BatchWriter, block: CommittedBlock) -> None:
        """The first batch of the source that waits is in the chain, or a batch of an earlier run took its place.

        Batches of different sources may be told in another order than they were proposed, if they bring no rows.
        """
        if reaches(self._committed_next.get(block.source_name, {}), block.next):
            return  # told again, or a block that only repeats the state of the source
        mine = next((batch for batch in self._in_flight if batch.source_name == block.source_name), None)
        # A batch of an earlier run may cover the same positions and hold other bytes; its time tells.
        is_mine = mine is not None and mine.system_time == block.system_time and same_positions(mine.next, block.next)
        if mine is None or not is_mine:
            self._trouble = self._trouble or Trouble("a batch that was proposed before this start was committed")
            return
        self._in_flight.remove(mine)
        self._committed_next[block.source_name] = block.next
        writer.committed(block)
