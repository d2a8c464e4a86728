"""Messages taken apart into units, in order.

Everything of a partition stays in its order, and a unit covers positions without a gap. Pieces of a payload that is not
complete yet are held back, uncovered, so that the chain waits before them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.errors import MalformedBytesError
from odf_common.ingest.messages import Code, Problem
from odf_common.messages.kafka_offsets import MAX_REPEATS, Repeat
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE, FetchedState, PollNote, UploadedPayload
from streaming_jobs.ingest.event_keys import event_keys
from streaming_jobs.ingest.headers import Headers, headers_of
from streaming_jobs.ingest.piece_runs import PieceRun, piece_runs
from streaming_jobs.ingest.units import Dropped, First, Payload, PlainRun, Refused, Taken, Unit, Uploaded

_SHOWN = 80  # characters


class KnownIds(Protocol):
    """The event ids of earlier messages."""

    def first_of(self, keys: Sequence[bytes]) -> Sequence[First | None]:
        """For each id the message that took it, None if it is free."""
        ...


class Held(Protocol):
    """Pieces that wait for the rest of their payload."""

    size: int

    def add(self, messages: pa.Table) -> None:
        """Hold more."""
        ...

    def table(self) -> pa.Table:
        """All that is held."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


@dataclass(slots=True, kw_only=True)
class OpenPayload:
    """A payload of which pieces are missing. `start` is the first of its messages."""

    first: PieceRun
    start: int
    held: Held
    count: int = 0
    """Pieces that are there."""


class _InMemory:
    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self.size = 0

    def add(self, messages: pa.Table) -> None:
        self._tables.append(messages)
        self.size += messages.nbytes

    def table(self) -> pa.Table:
        return pa.concat_tables(self._tables)

    def close(self) -> None:
        self._tables.clear()


@dataclass(kw_only=True)
class Splitter:
    """Takes the messages of one source apart, batch after batch. Holds what is open and the source's last poll."""

    one_payload_each: bool
    """Whether each message is a payload of its own: of a Snapshot nothing less makes sense."""
    ids: KnownIds | None = None
    fetched: FetchedState | None = None
    """What it is at once all units that were asked for are dealt with."""
    max_payload_size: int = 1 << 32
    cut: Callable[[pa.Table], Iterator[pa.Table]] = lambda messages: iter((messages,))
    """Cuts messages that have nothing to do with each other, so that no run is larger than a batch should be."""
    hold: Callable[[], Held] = _InMemory
    open: dict[int, OpenPayload] = field(default_factory=dict)
    """By partition."""
    taken: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """The ids that messages of this batch took, and where those are."""

    def units(self, messages: pa.Table) -> Iterator[Unit]:
        """The units of the next messages. Each must be dealt with before the next one is asked for."""
        headers = headers_of(messages)
        self.taken.clear()
        reading = _Reading(self, messages, headers)
        for start, end in self._segments(messages, headers):
            yield from reading.segment(start, end)

    def release(self, unit: Unit) -> None:
        """Leave the event ids of a unit to later messages: it was not taken."""
        for key, _, _ in unit.taken:
            self.taken.pop(key, None)

    def close(self) -> None:
        """Let go of what is open."""
        for waiting in self.open.values():
            waiting.held.close()
        self.open.clear()

    def _segments(self, messages: pa.Table, headers: Headers) -> Iterator[tuple[int, int]]:
        """Stretches of messages that are of one kind."""
        count = messages.num_rows
        cuts = np.zeros(count + 1, np.bool_)
        cuts[[0, count]] = True
        if headers.content_type is not None:
            codes = headers.content_type.dictionary_encode("encode").indices.to_numpy()
            cuts[1:count] |= codes[1:] != codes[:-1]
        if headers.batch_id is not None or self.open:
            partitions = messages["partition"].to_numpy()
            cuts[1:count] |= partitions[1:] != partitions[:-1]
        if headers.batch_id is not None:
            is_piece = headers.batch_id.is_valid().to_numpy(zero_copy_only=False)
            cuts[1:count] |= is_piece[1:] != is_piece[:-1]
        bounds = np.flatnonzero(cuts).tolist()
        return itertools.pairwise(bounds)


@dataclass
class _Reading:
    """One batch on its way."""

    splitter: Splitter
    messages: pa.Table
    headers: Headers

    def __post_init__(self) -> None:
        self._keys = event_keys(self.headers) if self.splitter.ids is not None else {}
        found = self.splitter.ids.first_of(list(self._keys.values())) if self.splitter.ids and self._keys else ()
        self._firsts = {key: first for key, first in zip(self._keys.values(), found, strict=True) if first is not None}

    def segment(self, start: int, end: int) -> Iterator[Unit]:
        if _value(self.headers.batch_id, start) is not None:
            for run in piece_runs(self.messages, self.headers, start, end):
                yield from self._pieces(run)
            return
        yield from self._abandoned_before(start)
        media_type = _text(_value(self.headers.content_type, start))
        is_upload = media_type is not None and media_type.partition(";")[0].strip().lower() == UPLOAD_MEDIA_TYPE
        if is_upload or self.splitter.one_payload_each:
            for row in range(start, end):
                yield self._payload(self.messages.slice(row, 1), row, media_type, is_upload=is_upload)
        else:
            yield from self._plain(start, end, media_type)

    def _plain(self, start: int, end: int, media_type: str | None) -> Iterator[Unit]:
        """Messages of polls are payloads of their own; what lies between them is not."""
        polls = pa.nulls(end - start) if self.headers.poll is None else self.headers.poll.slice(start, end - start)
        begin = start
        for place in pc.indices_nonzero(polls.is_valid()).to_pylist():
            row = start + place
            if row > begin:
                yield from self._runs(begin, row, media_type)
            yield self._payload(self.messages.slice(row, 1), row, media_type, is_upload=False)
            begin = row + 1
        if end > begin:
            yield from self._runs(begin, end, media_type)

    def _runs(self, start: int, end: int, media_type: str | None) -> Iterator[PlainRun]:
        for messages in self.splitter.cut(self.messages.slice(start, end - start)):
            yield self._run(messages, start, media_type)
            start += messages.num_rows

    def _run(self, messages: pa.Table, start: int, media_type: str | None) -> PlainRun:
        repeats: list[Repeat] = []
        repeated: list[int] = []
        taken: list[Taken] = []
        if self._keys:
            positions = zip(messages["partition"].to_pylist(), messages["offset"].to_pylist(), strict=True)
            for row, (partition, offset) in enumerate(positions):
                key = self._keys.get(start + row)
                if key is None:
                    continue
                if (first := self._first(key)) is None:
                    taken.append(self._take(key, partition, offset))
                    continue
                repeated.append(row)
                if len(repeats) < MAX_REPEATS:
                    repeats.append(_repeat(partition, offset, first))
        return PlainRun(
            messages=messages,
            media_type=media_type,
            repeated=np.asarray(repeated, np.int64),
            repeats=tuple(repeats),
            taken=tuple(taken),
        )

    def _payload(self, messages: pa.Table, row: int, media_type: str | None, *, is_upload: bool) -> Unit:
        """The unit of one payload, whose headers are those of its first message."""
        upload = None
        try:
            note = _parsed(PollNote, _value(self.headers.poll, row))
            if is_upload:
                upload = UploadedPayload.from_json(messages["value"][0].as_py() or b"")
        except MalformedBytesError as error:
            return Refused(messages=messages, problem=Problem(Code.INVALID_PAYLOAD, str(error)))
        if note is not None:
            if note.expected != self.splitter.fetched:
                return Dropped(messages=messages, media_type=media_type, upload=upload)
            self.splitter.fetched = note.fetched
        partition, offset = messages["partition"][0].as_py(), messages["offset"][0].as_py()
        taken: tuple[Taken, ...] = ()
        if (key := self._keys.get(row)) is not None:
            if (first := self._first(key)) is not None:
                repeats = (_repeat(partition, offset, first),)
                return Dropped(messages=messages, media_type=media_type, upload=upload, repeats=repeats)
            taken = (self._take(key, partition, offset),)
        if upload is not None:
            return Uploaded(messages=messages, upload=upload, taken=taken)
        return Payload(messages=messages, media_type=media_type, taken=taken)

    def _take(self, key: bytes, partition: int, offset: int) -> Taken:
        self.splitter.taken[key] = partition, offset
        return key, partition, offset

    def _first(self, key: bytes) -> First | None:
        """The message that took an id, here or before."""
        if (place := self.splitter.taken.get(key)) is not None:
            return First(*place)
        return self._firsts.get(key)

    def _pieces(self, run: PieceRun) -> Iterator[Unit]:
        """Pieces that follow on each other: they continue what is open, begin something, or belong to nothing."""
        messages = self.messages.slice(run.start, run.end - run.start)
        partition = messages["partition"][0].as_py()
        waiting = self.splitter.open.get(partition)
        if waiting is not None and not waiting.first.is_continued_by(run, waiting.count):
            yield from self._abandoned(partition, f"piece {run.index} of {_shown(run.batch_id)} came instead")
            waiting = None
        if run.problem is not None:
            yield Refused(messages=messages, problem=Problem(Code.INCOMPLETE_BATCH, run.problem))
            return
        if waiting is None:
            if run.index != 0:
                reason = f"piece {run.index} of payload {_shown(run.batch_id)} came without the pieces before it"
                yield Refused(messages=messages, problem=Problem(Code.INCOMPLETE_BATCH, reason))
                return
            if run.end - run.start == run.count:
                yield self._payload(messages, run.start, run.media_type, is_upload=False)
                return
            start = messages["offset"][0].as_py()
            waiting = OpenPayload(first=run, start=start, held=self.splitter.hold())
            self.splitter.open[partition] = waiting
        waiting.held.add(messages)
        waiting.count += run.end - run.start
        if waiting.held.size > self.splitter.max_payload_size:
            limit = self.splitter.max_payload_size
            yield from self._abandoned(
                partition, f"its pieces have more than {limit} bytes: upload it instead", Code.TOO_LARGE
            )
        elif waiting.count == waiting.first.count:
            yield from self._completed(partition)

    def _completed(self, partition: int) -> Iterator[Unit]:
        waiting = self.splitter.open[partition]
        messages = waiting.held.table()
        first = _Reading(self.splitter, messages.slice(0, 1), headers_of(messages.slice(0, 1)))
        yield first._payload(messages, 0, waiting.first.media_type, is_upload=False)
        del self.splitter.open[partition], messages
        waiting.held.close()

    def _abandoned_before(self, row: int) -> Iterator[Unit]:
        if self.splitter.open:
            partition = self.messages["partition"][row].as_py()
            yield from self._abandoned(partition, "a message that is no piece of it came between")

    def _abandoned(self, partition: int, why: str, code: str = Code.INCOMPLETE_BATCH) -> Iterator[Unit]:
        waiting = self.splitter.open.get(partition)
        if waiting is None:
            return
        name = _shown(waiting.first.batch_id)
        there = f"{waiting.count} of {waiting.first.count} pieces of payload {name} were there"
        yield Refused(messages=waiting.held.table(), problem=Problem(code, f"{why}; {there}"))
        del self.splitter.open[partition]
        waiting.held.close()


def _repeat(partition: int, offset: int, first: First) -> Repeat:
    return Repeat(
        partition=partition,
        offset=offset,
        first_partition=first.partition,
        first_offset=first.offset,
        block=first.block,
    )


def _value(column: pa.Array | None, row: int) -> bytes | None:
    return None if column is None else column[row].as_py()


def _parsed(model: type[PollNote], value: bytes | None) -> PollNote | None:
    return None if value is None else model.from_json(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _shown(batch_id: bytes) -> str:
    return repr(batch_id.decode(errors="replace")[:_SHOWN])
