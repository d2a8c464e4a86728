"""How fast the states of a dataset are made anew from its slices."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.streaming.keyed import events
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.data.slice_writer import SliceWriter
from odf_common.identity.key_pair import KeyPair
from odf_common.metadata.events import AddData, DatasetKind, MetadataEvent, Seed, SetDataSchema
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odf_common.storage.dataset_folder import local_folder
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal
from streaming_jobs.ingest.state import KeyedStates

KEYS = 5_000_000

_SLICE = 250_000
_KEY = ("id",)
_STRATEGIES: tuple[MergeStrategy, ...] = (
    MergeStrategyLedger(primary_key=_KEY),
    MergeStrategyUpsertStream(primary_key=_KEY),
    MergeStrategySnapshot(primary_key=_KEY),
)


def measure(ground: Ground) -> None:
    """Print the rows a second for each strategy."""
    report = Report("rebuild")
    folder = ground.folder / "rebuild"
    folder.mkdir()
    dataset = local_folder(folder / "dataset")
    chain = MetadataChain(dataset.objects, dataset.refs)
    _append(chain, Seed(dataset_id=KeyPair.generate().dataset_id, dataset_kind=DatasetKind.ROOT))
    for start in range(0, KEYS, _SLICE):
        rows = _rows(start)
        if not start:
            _append(chain, SetDataSchema(raw_arrow_schema=encode_arrow_schema(rows.schema)))
        path = folder / "slice"
        with SliceWriter(path, rows.schema) as writer:
            for batch in rows.combine_chunks().to_batches():
                writer.write(batch)
        written = writer.close().to_data_slice()
        dataset.objects.put_file(ObjectKind.DATA, written.physical_hash, path)
        _append(chain, AddData(prev_offset=start - 1 if start else None, new_data=written))
    for strategy in _STRATEGIES:
        states = KeyedStates(folder / strategy.kind, [strategy])
        began = time.perf_counter()
        states.catch_up(chain, dataset.objects, DatasetVocabulary())
        taken = time.perf_counter() - began
        states.close()
        size = _size(folder / strategy.kind)
        report.figure(f"{strategy.kind}, {KEYS} keys", KEYS / taken, "rows/s", goal="reported", size_mib=size >> 20)
    report.save()


def _rows(start: int) -> pa.Table:
    data = events(np.arange(start, start + _SLICE), values=1.5)
    system = pa.table(
        {
            "offset": pa.array(np.arange(start, start + _SLICE)),
            "op": pa.array(np.zeros(_SLICE, np.int32)),
            "system_time": data["event_time"],
        }
    )
    for name in data.column_names:
        system = system.append_column(name, data[name])
    return system


def _append(chain: MetadataChain, event: MetadataEvent) -> None:
    state = chain.state()
    chain.append([seal(next_block(state, event, system_time=state.system_time or Timestamp.now()))])


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
