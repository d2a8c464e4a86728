"""Keys and values in embedded RocksDB, made for reading and writing many of them at once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
    WriteBatch,
)

from streaming_jobs.ingest.state.errors import StateDamagedError

# No merge key begins with a zero byte: keys begin with the tag of a type.
_MARK = b"\x00state"
_NOTE = b"\x00note/"

_BLOOM_BITS = 10  # for each key: one lookup in a hundred reads a block in vain
_CACHE_SIZE = 32 << 20  # bytes
_THREADS = min(4, os.cpu_count() or 1)
_SHARE = 2_000  # keys: fewer are not worth another thread
_MANY = 100_000  # keys from which on reading them in their order, neighbours and all, may be cheaper
_RUN = 50_000  # of those, so many at once
_DENSE = 3  # neighbours read for each key, at most
_BULK = 20_000  # changes from which on a file of them is cheaper than writing one by one

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to which slice of the chain a state knows the rows."""

    next_offset: int = 0
    last_slice: str | None = None
    reading: str | None = None
    """A slice of which some rows may be in already."""

    @classmethod
    def decode(cls, data: bytes) -> Mark:
        """The inverse of `encode`."""
        return cls(*json.loads(data))

    def encode(self) -> bytes:
        """A line of JSON; the last part only where there is one, as it is rare."""
        parts = [self.next_offset, self.last_slice, self.reading]
        return json.dumps(parts if self.reading else parts[:2]).encode()

    def within(self, slice_hash: str) -> Mark:
        """The same while a slice is read."""
        return replace(self, reading=slice_hash)


class Store:
    """Not for more than one thread, although it uses some itself."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._db = Rdict(str(path), _options())
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="state")
        found = self._db.get(_MARK)
        self.mark = Mark() if found is None else Mark.decode(found)

    @classmethod
    def opened(cls, path: Path) -> Store:
        """The store of a folder; an empty one where it is damaged."""
        if _flag(path).exists():
            return cls._anew(path, "it was found damaged while it was read")
        try:
            return cls(path)
        except Exception as error:  # RocksDB knows no other type
            if not _is_damage(error):
                raise
            return cls._anew(path, str(error))

    def emptied(self) -> Store:
        """An empty store in place of this one."""
        self.close()
        shutil.rmtree(self.path)
        return Store(self.path)

    def find(self, keys: pa.Array) -> pa.ChunkedArray:
        """The value of each key, null where there is none."""
        with self._noticing_damage():
            if len(keys) >= _MANY:
                return self._get_many(keys)
            return pa.chunked_array([pa.array(self._get(keys.to_pylist()), pa.binary())])

    def write(self, keys: pa.Array, values: pa.Array | None, mark: Mark) -> None:
        """Set the values of keys, of which there are no two alike, and the mark: all or nothing.

        A null among the values deletes its key. Without values the keys are just known.
        """
        with self._noticing_damage():
            (self._write_few if len(keys) < _BULK else self._write_many)(keys, values, mark)
        self.mark = mark

    def notes(self) -> dict[int, bytes]:
        """What was noted beside the values, by number."""
        with self._noticing_damage():
            found = cast(Iterator[tuple[bytes, bytes]], self._db.items(from_key=_NOTE))
            noted = takewhile(lambda item: item[0].startswith(_NOTE), found)
            return {int(key.removeprefix(_NOTE), 16): value for key, value in noted}

    def note(self, number: int, value: bytes) -> None:
        """Note something beside the values."""
        with self._noticing_damage():
            self._db.put(_NOTE + b"%08x" % number, value)

    def close(self) -> None:
        """Let go of the files."""
        self._threads.shutdown()
        self._db.close()

    @classmethod
    def _anew(cls, path: Path, reason: str) -> Store:
        _log.warning("state is damaged: making it anew", path=str(path), reason=reason)
        shutil.rmtree(path, ignore_errors=True)
        _flag(path).unlink(missing_ok=True)
        return cls(path)

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        """RocksDB finds damage when it reads a block; whoever opens the store next is to know."""
        try:
            yield
        except Exception as error:
            if not _is_damage(error):
                raise
            _flag(self.path).touch()
            raise StateDamagedError(self.path, str(error)) from error

    def _get(self, keys: list[bytes]) -> list[bytes | None]:
        """RocksDB waits for the disk and searches without holding up other Python threads."""
        parts = max(1, min(_THREADS, len(keys) // _SHARE))
        if parts == 1:
            return self._get_some(keys)
        shares = [keys[start:end] for start, end in pairwise(len(keys) * part // parts for part in range(parts + 1))]
        return [value for found in self._threads.map(self._get_some, shares) for value in found]

    def _get_some(self, keys: list[bytes]) -> list[bytes | None]:
        return cast(list[bytes | None], self._db.get(cast(Any, keys))) if keys else []

    def _get_many(self, keys: pa.Array) -> pa.ChunkedArray:
        order = pc.sort_indices(keys)
        ordered = keys.take(order).to_pylist()
        found: list[pa.Array] = []
        is_dense = True
        for start in range(0, len(ordered), _RUN):
            run = ordered[start : start + _RUN]
            if is_dense:
                values, is_dense = self._scan(run)
            else:
                values = self._get(run)
            found.append(pa.array(values, pa.binary()))
        back = np.empty(len(keys), np.int64)
        back[order.to_numpy()] = np.arange(len(keys))
        return pa.chunked_array(found).take(pa.array(back))

    def _scan(self, keys: list[bytes]) -> tuple[list[bytes | None], bool]:
        """Read on from the first of some keys in ascending order; whether most of them were passed on the way."""
        limit = _DENSE * len(keys)
        passed = dict(islice(self._db.items(from_key=keys[0]), limit))
        values = list(map(passed.get, keys))
        if len(passed) < limit:
            return values, True
        last = next(reversed(passed))
        missed = next((place for place, key in enumerate(keys) if key > last), len(keys))
        values[missed:] = self._get(keys[missed:])
        return values, 2 * missed > len(keys)

    def _write_few(self, keys: pa.Array, values: pa.Array | None, mark: Mark) -> None:
        changes = WriteBatch(raw_mode=True)
        for key, value in zip(keys.to_pylist(), _values(values, len(keys)), strict=True):
            if value is None:
                changes.delete(key)
            else:
                changes.put(key, value)
        changes.put(_MARK, mark.encode())
        self._db.write(changes)

    def _write_many(self, keys: pa.Array, values: pa.Array | None, mark: Mark) -> None:
        """As a file in the order of the keys, which RocksDB takes over as it is."""
        order = pc.sort_indices(keys)
        part = self.path.with_name(f"{self.path.name}.sst")
        part.unlink(missing_ok=True)  # it may be another name of a file that the store took over before a crash
        file = SstFileWriter(_options())
        file.open(str(part))
        file[_MARK] = mark.encode()
        ordered = None if values is None else values.take(order)
        for key, value in zip(keys.take(order).to_pylist(), _values(ordered, len(keys)), strict=True):
            if value is None:
                del file[key]
            else:
                file[key] = value
        file.finish()
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        self._db.ingest_external_file([str(part)], options)


def places_in(known: pa.Array, keys: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where each of some keys is among others, -1 where it is not; no two of either are alike."""
    if len(known) <= 4 * len(keys):  # the smaller side is the one to make a table of
        return np.asarray(pc.index_in(keys, value_set=known).fill_null(-1), np.int64)
    found = np.full(len(keys), -1, np.int64)
    places = pc.index_in(known, value_set=keys).fill_null(-1).to_numpy()
    hits = np.flatnonzero(places >= 0)
    found[places[hits]] = hits
    return found


def _values(values: pa.Array | None, count: int) -> Sequence[bytes | None]:
    return [b""] * count if values is None else values.to_pylist()


def _flag(path: Path) -> Path:
    return path.with_name(f"{path.name}.damaged")


def _is_damage(error: Exception) -> bool:
    return str(error).startswith("Corruption")


def _options() -> Options:
    """Many lookups are for keys that are not there: a Bloom filter answers those without reading a block.

    The others are all over the files. Plain blocks, mapped into memory, cost little more where there are many of them;
    compressed ones would have to be expanded each time.
    """
    blocks = BlockBasedOptions()
    blocks.set_bloom_filter(_BLOOM_BITS, block_based=False)
    blocks.set_block_cache(Cache(_CACHE_SIZE))
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(DBCompressionType.none())
    options.set_allow_mmap_reads(True)
    return options
