"""Whether a Ledger's batch costs the same with many known keys as with few."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import structlog

from benchmarks.streaming.report import Report
from benchmarks.streaming.system import SOURCE, Ground
from odf_common.catalog.records import PushSourceBinding, SourceSettings
from odf_common.chain.state import ChainState, next_block
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.multihash import ARROW0_SHA3_256, Multihash, sha3_256
from odf_common.ingest.messages import MESSAGES
from odf_common.ingest.source import SourcePlan
from odf_common.messages.completion import Completion
from odf_common.metadata.events import DatasetKind, Seed
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice, OffsetInterval
from odf_common.metadata.sources import MergeStrategyLedger
from odf_common.timestamp import Timestamp
from odf_common.uploads import UploadArea
from odf_common.wire.encode import seal
from streaming_jobs.ingest.messenger import Messenger
from streaming_jobs.ingest.source import CommittedBlock, Source
from streaming_jobs.ingest.state import KeyedStates
from streaming_jobs.ingest.writer import BatchWriter

FEW, MANY = 100_000, 5_000_000
ROWS = 10_000
KNOWN_ROWS = 1_000  # of them
BATCHES = 60
WARM_UP = 10

_CHUNK = 100_000
_KEY = ("id",)
_KAFKA_TIME_US = 1_700_000_000_000_000


class _Nobody:
    """Takes completions and forgets them."""

    def propose(self, completion: Completion) -> None:
        """Nothing to do."""


def measure(ground: Ground) -> None:
    """Print the ratio, with batches of both in turn."""
    report = Report("ledger")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    ledgers = {keys: _Ledger(ground.folder / f"ledger-{keys}", keys) for keys in (FEW, MANY)}
    taken: dict[int, list[float]] = {keys: [] for keys in ledgers}
    for _ in range(WARM_UP + BATCHES):
        for keys, ledger in ledgers.items():
            taken[keys].append(ledger.batch())
    few, many = (statistics.median(values[WARM_UP:]) for values in taken.values())
    name = f"a batch of {ROWS} rows, {MANY} known keys : {FEW}"
    report.figure(name, many / few, "ratio", goal="<= 1.3", seconds=many, seconds_with_few=few)
    report.save()
    for ledger in ledgers.values():
        ledger.writer.close()


class _Ledger:
    """A dataset with so many known keys, and new batches for it."""

    def __init__(self, folder: Path, keys: int) -> None:
        self._keys = self._next = keys
        self._position = 0
        source = SOURCE.model_copy(update={"merge": MergeStrategyLedger(primary_key=_KEY)})
        dataset_id = KeyPair.generate().dataset_id
        chain = ChainState()
        for event in (Seed(dataset_id=dataset_id, dataset_kind=DatasetKind.ROOT), source):
            block = seal(next_block(chain, event, system_time=Timestamp.now()))
            chain = chain.followed_by(block.block, block.hash)
        binding = PushSourceBinding(
            dataset_id=dataset_id, source_name="default", topic="ledger", settings=SourceSettings()
        )
        plan = SourcePlan.of(source, DatasetVocabulary(), None)
        self._states = KeyedStates.for_plans(folder / "index", dataset_id, [plan])
        for rows, described in _known(keys):
            self._states.propose(rows, described)
            self._states.committed(described.offset_interval.end + 1)
        self.writer = BatchWriter(
            chain,
            {
                "default": Source(
                    dataset="ledger", binding=binding, topic_id="id", plan=plan, preprocess=None, read_before=None
                )
            },
            staging=folder / "staging",
            messenger=cast(Messenger, _Nobody()),
            states=self._states,
            uploads=UploadArea(folder / "uploads"),
            topic_id_of=lambda _: "id",
        )

    def batch(self) -> float:
        """Seconds to stage a batch and, once it is committed, to learn its keys."""
        messages = self._messages()
        began = time.perf_counter()
        for completion in self.writer.write("default", messages):
            assert completion is not None
            staged = completion.add_data.new_data
            assert staged is not None
            places = staged.offset_interval
            assert places.end - places.start + 1 == ROWS - KNOWN_ROWS
            self.writer.committed(
                CommittedBlock(
                    source_name="default",
                    next={0: self._position},
                    system_time=completion.system_time,
                    block_hash=staged.physical_hash,
                    next_offset=places.end + 1,
                )
            )
        return time.perf_counter() - began

    def _messages(self) -> pa.Table:
        """The known ones are spread over all that are known; the others are new."""
        step = self._keys // KNOWN_ROWS
        known = [number * step + self._position % step for number in range(KNOWN_ROWS)]
        new = range(self._next, self._next + ROWS - KNOWN_ROWS)
        values = [_event(number) for number in (*known, *new)]
        positions = range(self._position, self._position + ROWS)
        self._next += len(new)
        self._position += ROWS
        columns = [[0] * ROWS, positions, [_KAFKA_TIME_US] * ROWS, values, [None] * ROWS]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, MESSAGES, strict=True)], schema=MESSAGES)


def _id(number: int) -> int:
    """Ids that are all over the place, as those of real records are."""
    return number * 0x9E3779B97F4A7C15 % 2**62


def _event(number: int) -> bytes:
    return (
        f'{{"event_time":"2024-01-01T00:00:00.000Z","id":{_id(number)},"device":"device-{number % 1000:05}",'
        f'"value":1.5,"ok":true}}'
    ).encode()


def _known(keys: int) -> Iterator[tuple[pa.Table, DataSlice]]:
    """The rows that came before, and the slices that hold them."""
    for start in range(0, keys, _CHUNK):
        rows = pa.table({"id": pa.array(map(_id, range(start, start + _CHUNK)), pa.int64())})
        digest = sha3_256(str(start).encode())
        yield (
            rows,
            DataSlice(
                logical_hash=Multihash(ARROW0_SHA3_256, digest.digest),
                physical_hash=digest,
                offset_interval=OffsetInterval(start=start, end=start + _CHUNK - 1),
                size=1,
            ),
        )
