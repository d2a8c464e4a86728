"""The event ids of one source: which message took each, for as long as the source's window says.

Embedded RocksDB with what is committed; ids of batches that wait for their commit are in memory beside it. What is
missing, or lost, is read again from the topic's headers. Most sources have no ids: for them a note says how far that is
known, so that nothing is read again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import time
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import structlog
from rocksdict import BlockBasedOptions, Options, Rdict, WriteBatch

from odf_common.chain.source_certificate import row_count
from odf_common.errors import MalformedBytesError
from odf_common.identity.multihash import Multihash
from odf_common.messages.kafka_offsets import KafkaOffsets, reaches, same_positions
from odf_common.metadata.events import AddData
from odf_common.timestamp import Timestamp
from streaming_jobs.ingest.event_keys import event_key_of
from streaming_jobs.ingest.units import First, Taken

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.identity.did import DatasetId

Headers = Iterable[tuple[str, bytes | None]]
ReadHeaders = Callable[[Mapping[int, int], Mapping[int, int]], Iterator[Sequence[tuple[int, int, Headers]]]]
"""Partition, offset and headers of the messages from positions on to others."""

_STATE = b"s"
_ID = b"i"
_TIME = b"t"
_PLACE = struct.Struct(">qIQ")
_MOMENT = struct.Struct(">q")
_LENGTH = struct.Struct(">B")  # keys are short: see `event_keys`
_WRITE_BUFFER = 4 << 20  # bytes
_BLOOM_BITS = 10
_PRUNE_EVERY = 256  # commits
_MAX_PRUNED = 100_000
_NOTE_EVERY_S = 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    time_ns: int
    first: First

    def to_bytes(self) -> bytes:
        place = _PLACE.pack(self.time_ns, self.first.partition, self.first.offset)
        return place if self.first.block is None else place + self.first.block.to_bytes()

    def first_since(self, time_ns: int) -> First | None:
        """None if it was taken before that."""
        return self.first if self.time_ns >= time_ns else None

    @classmethod
    def of_bytes(cls, data: bytes) -> _Entry:
        time_ns, partition, offset = _PLACE.unpack_from(data)
        rest = data[_PLACE.size :]
        return cls(time_ns, First(partition, offset, Multihash.from_bytes(rest) if rest else None))


@dataclass(frozen=True, slots=True)
class _Waiting:
    next: Mapping[int, int]
    time_ns: int
    taken: Mapping[bytes, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Covered:
    """What a block covers of the topic."""

    time_ns: int
    block: Multihash
    start: Mapping[int, int]
    next: Mapping[int, int]
    is_taken: bool
    """Whether its messages take their ids: not where all of it became dead letters, see `Counts.is_taken`."""


class EventIds:
    """Used by one thread."""

    def __init__(self, path: Path, *, topic_id: str, window_s: float) -> None:
        self._window_ns = int(window_s * 1e9)
        self._topic_id = topic_id
        self._path = path
        self._note = path.with_suffix(".json")
        self._db = _opened(path) if path.exists() else None
        self._unnoted: Mapping[int, int] | None = None
        self._noted = time.monotonic()
        self._waiting: deque[_Waiting] = deque()
        self._commits = 0

    @classmethod
    def of_source(cls, indexes: Path, dataset_id: DatasetId, name: str, *, topic_id: str, window_s: float) -> EventIds:
        """The ids of a source, where its dataset's indexes are."""
        folder = indexes / dataset_id.multibase / f"ids-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        return cls(folder, topic_id=topic_id, window_s=window_s)

    def catch_up(self, chain: MetadataChain, source_name: str, read: Mapping[int, int], headers: ReadHeaders) -> None:
        """Learn the ids of what the chain has read since; all of the window's if what is here is not of this chain."""
        known = self._known()
        if known is not None and same_positions(known, read):
            return
        if known is not None and not reaches(read, known):
            known = None
        if known is None:
            self._empty()
        covered = list(self._covered(chain, source_name, known or {}))
        if covered:
            start = dict(covered[-1].start)
            _log.info("reading event ids", source=source_name, start=start, end=dict(read))
            for found in _placed(covered, headers(start, read)):
                self._add(found)
        self._write({}, read)

    def first_of(self, keys: Sequence[bytes]) -> list[First | None]:
        """See `splitter.KnownIds`."""
        oldest = time.time_ns() - self._window_ns
        found = self._find(keys)
        firsts = [None if data is None else _Entry.of_bytes(data).first_since(oldest) for data in found]
        for waiting in self._waiting:
            if waiting.taken:
                places = map(waiting.taken.get, keys)
                firsts = [
                    first if place is None else First(*place) for place, first in zip(places, firsts, strict=True)
                ]
        return firsts

    def propose(self, taken: Iterable[Taken], next_positions: Mapping[int, int], system_time: Timestamp) -> None:
        """Count ids in before their batch is committed."""
        places = {key: (partition, offset) for key, partition, offset in taken}
        self._waiting.append(_Waiting(dict(next_positions), system_time.ns, places))

    def committed(self, next_positions: Mapping[int, int], block: Multihash) -> None:
        """Keep the ids of everything before these positions; the block covers the last of it."""
        while self._waiting and reaches(next_positions, self._waiting[0].next):
            done = self._waiting.popleft()
            ending, time_ns = block.to_bytes(), done.time_ns
            values = {key: _PLACE.pack(time_ns, *place) + ending for key, place in done.taken.items()}
            self._write({time_ns: values}, done.next)
        self._commits += 1
        if self._commits % _PRUNE_EVERY == 0:
            self.prune()

    def prune(self) -> None:
        """Forget ids that are older than the window."""
        if self._db is None:
            return
        oldest = _MOMENT.pack(max(time.time_ns() - self._window_ns, 0))
        changes = WriteBatch(raw_mode=True)
        count = 0
        for found, packed in self._db.items(from_key=_TIME):
            entry = cast(bytes, found)
            moment = entry[1 : 1 + _MOMENT.size]
            if entry[:1] != _TIME or moment >= oldest or count >= _MAX_PRUNED:
                break
            keys = list(_unpacked(cast(bytes, packed)))
            count += len(keys)
            changes.delete(entry)
            for key, known in zip(keys, self._find(keys), strict=True):
                if known is not None and known[: _MOMENT.size] == moment:  # it was not taken anew since
                    changes.delete(_ID + key)
        self._db.write(changes)

    def close(self) -> None:
        """Let go of the files."""
        self._write_note()
        if self._db is not None:
            self._db.close()

    def _known(self) -> dict[int, int] | None:
        """How far the topic's ids are here; None if they are not of this topic."""
        try:
            state = self._note.read_bytes() if self._db is None else self._db.get(_STATE)
            topic_id, positions = json.loads(cast(bytes, state or b"[null,{}]"))
            return {int(key): value for key, value in positions.items()} if topic_id == self._topic_id else None
        except (OSError, ValueError, TypeError):
            return None

    def _empty(self) -> None:
        self._note.unlink(missing_ok=True)
        if self._db is not None:
            self._db.close()
            self._db = None
            shutil.rmtree(self._path)

    def _covered(self, chain: MetadataChain, source_name: str, known: Mapping[int, int]) -> Iterator[_Covered]:
        """What blocks cover beyond the known positions and within the window, newest first."""
        oldest = time.time_ns() - self._window_ns
        for encoded in chain.blocks():
            event, time_ns = encoded.block.event, encoded.block.system_time.ns
            if time_ns < oldest:
                return
            if not isinstance(event, AddData):
                continue
            state = event.new_source_state
            if state is None or state.source_name != source_name:
                continue
            try:
                offsets = KafkaOffsets.of_state(state)
            except MalformedBytesError:
                continue
            if offsets is None or offsets.topic_id != self._topic_id or reaches(known, offsets.next):
                return
            if not same_positions(offsets.start, offsets.next):
                is_taken = row_count(event) > 0 or offsets.records != offsets.dead_letters
                yield _Covered(time_ns, encoded.hash, offsets.start, offsets.next, is_taken)

    def _find(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if self._db is None or not keys:
            return [None] * len(keys)
        return cast("list[bytes | None]", self._db.get([_ID + key for key in keys]))

    def _add(self, found: Mapping[bytes, _Entry]) -> None:
        known = dict(zip(found, self._find(list(found)), strict=True))
        by_time: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        for key, entry in found.items():
            if not self._is_taken(known[key], entry):
                by_time[entry.time_ns][key] = entry.to_bytes()
        self._write(by_time, None)

    def _is_taken(self, known: bytes | None, entry: _Entry) -> bool:
        return known is not None and _Entry.of_bytes(known).time_ns >= entry.time_ns - self._window_ns

    def _write(self, by_time: Mapping[int, Mapping[bytes, bytes]], next_positions: Mapping[int, int] | None) -> None:
        """Keep the values of ids, by the time at which they were taken."""
        if self._db is None:
            if not any(by_time.values()):
                self._take_note(next_positions)
                return
            self._db = _opened(self._path)
        changes = WriteBatch(raw_mode=True)
        for time_ns, values in by_time.items():
            for key, value in values.items():
                changes.put(_ID + key, value)
            if values:
                changes.put(_TIME + _MOMENT.pack(time_ns) + next(iter(values)), _packed(values))
        if next_positions is not None:
            changes.put(_STATE, self._state(next_positions))
        self._db.write(changes)

    def _take_note(self, next_positions: Mapping[int, int] | None) -> None:
        """Now and then: what is not noted is read again, and has no ids either."""
        self._unnoted = next_positions or self._unnoted
        if time.monotonic() - self._noted > _NOTE_EVERY_S:
            self._write_note()

    def _write_note(self) -> None:
        if self._db is None and self._unnoted is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part = self._note.with_suffix(".part")
            part.write_bytes(self._state(self._unnoted))
            part.replace(self._note)
            self._unnoted = None
        self._noted = time.monotonic()

    def _state(self, positions: Mapping[int, int]) -> bytes:
        return json.dumps([self._topic_id, dict(positions)]).encode()


def _placed(
    covered: Sequence[_Covered], messages: Iterator[Sequence[tuple[int, int, Headers]]]
) -> Iterator[dict[bytes, _Entry]]:
    """The ids of messages, with what is known of the blocks that cover them; of equal ones the first."""
    blocks: dict[int, list[tuple[int, _Covered]]] = defaultdict(list)
    for each in reversed(covered):
        for partition, end in each.next.items():
            if end > each.start.get(partition, 0):
                blocks[partition].append((each.start.get(partition, 0), each))
    for some in messages:
        found: dict[bytes, _Entry] = {}
        for partition, offset, headers in some:
            key = event_key_of(headers)
            place = bisect_right(blocks[partition], offset, key=lambda block: block[0]) - 1
            if key is not None and place >= 0:
                block = blocks[partition][place][1]
                if block.is_taken:
                    found.setdefault(key, _Entry(block.time_ns, First(partition, offset, block.block)))
        yield found


def _packed(keys: Iterable[bytes]) -> bytes:
    return b"".join(part for key in keys for part in (_LENGTH.pack(len(key)), key))


def _unpacked(data: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(data):
        (length,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size
        yield data[place : place + length]
        place += length


def _opened(path: Path) -> Rdict:
    path.parent.mkdir(parents=True, exist_ok=True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(_WRITE_BUFFER)
    options.set_keep_log_file_num(1)
    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(_BLOOM_BITS, block_based=False)  # most ids are new
    options.set_block_based_table_factory(blocks)
    try:
        return Rdict(str(path), options)
    except Exception as error:  # RocksDB knows no other type
        if not str(error).startswith("Corruption"):
            raise
        _log.warning("event ids are damaged: reading them anew", path=str(path), error=str(error))
        shutil.rmtree(path)
        return Rdict(str(path), options)
