"""A dataset whose slices are written as tests say, and the states that follow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import next_block
from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.data.slice_writer import SliceWriter
from odf_common.data.slices import read_slice
from odf_common.identity.did import DatasetId
from odf_common.identity.key_pair import KeyPair
from odf_common.metadata.events import AddData, DatasetKind, MetadataEvent, Seed, SetDataSchema
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice
from odf_common.metadata.sources import MergeStrategy
from odf_common.storage.dataset_folder import local_folder
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal
from streaming_jobs.ingest.state import KeyedStates, OnProgress

LONG_AGO = Timestamp.parse("2020-01-01T00:00:00Z")
TIME = pa.timestamp("ms", "UTC")


@dataclass
class Dataset:
    """In a folder, with its states beside it."""

    folder: Path
    strategies: Sequence[MergeStrategy] = ()
    dataset_id: DatasetId = field(default_factory=lambda: KeyPair.generate().dataset_id)

    def __post_init__(self) -> None:
        self.store = local_folder(self.folder / "dataset")
        self.chain = MetadataChain(self.store.objects, self.store.refs)
        self.append(Seed(dataset_id=self.dataset_id, dataset_kind=DatasetKind.ROOT))
        self.staged: list[DataSlice] = []
        self.rows: list[pa.Table] = []

    @property
    def states_folder(self) -> Path:
        return self.folder / "states"

    @property
    def vocabulary(self) -> DatasetVocabulary:
        return self.chain.state().vocabulary

    @property
    def next_offset(self) -> int:
        return self.staged[-1].offset_interval.end + 1 if self.staged else self.chain.state().next_offset

    def append(self, *events: MetadataEvent) -> None:
        for one in events:
            state = self.chain.state()
            self.chain.append([seal(next_block(state, one, system_time=state.system_time or LONG_AGO))])

    def states(self, on_progress: OnProgress | None = None) -> KeyedStates:
        """Brought up to date."""
        states = KeyedStates(self.states_folder, self.strategies)
        try:
            states.catch_up(self.chain, self.store.objects, self.vocabulary, on_progress)
        except BaseException:
            states.close()
            raise
        return states

    def stage(self, rows: pa.Table, op: Sequence[int] | pa.Array | None = None) -> tuple[pa.Table, DataSlice]:
        """Rows with data columns, as a slice that is to follow."""
        names = self.vocabulary
        start, count = self.next_offset, rows.num_rows
        final = pa.table(
            {
                names.offset_column: pa.array(np.arange(start, start + count)),
                names.operation_type_column: pa.array([0] * count if op is None else op, pa.int32()),
                names.system_time_column: pa.array([0] * count, TIME),
            }
        )
        data = {name: rows[name] for name in rows.column_names}
        event_time = data.pop(names.event_time_column, None)
        if event_time is not None:
            final = final.append_column(names.event_time_column, event_time)
        for name, column in data.items():
            final = final.append_column(name, column)
        path = self.folder / uuid4().hex
        with SliceWriter(path, final.schema, vocabulary=names) as writer:
            for batch in final.combine_chunks().to_batches():
                writer.write(batch)
        staged = writer.close().to_data_slice()
        self.store.objects.put_file(ObjectKind.DATA, staged.physical_hash, path)
        self.staged.append(staged)
        return final, staged

    def commit(self, count: int | None = None) -> int:
        """Put the oldest staged slices, or all, into the chain; returns the chain's next offset."""
        for staged in self.staged[:count]:
            state = self.chain.state()
            columns = self._read(staged).schema
            known = state.data_schema
            if known is None or len(known.fields) < len(columns.names):
                self.append(SetDataSchema(raw_arrow_schema=encode_arrow_schema(columns)))
            prev = staged.offset_interval.start - 1 if staged.offset_interval.start else None
            self.append(AddData(prev_offset=prev, new_data=staged))
        self.staged = self.staged[count:] if count is not None else []
        return self.chain.state().next_offset

    def add(self, rows: pa.Table, op: Sequence[int] | None = None) -> None:
        """Stage and commit."""
        self.stage(rows, op)
        self.commit()

    def history(self) -> pa.Table | None:
        """All rows that were staged or committed."""
        committed = [block.block.event for block in self.chain.blocks()][::-1]
        slices = [event.new_data for event in committed if isinstance(event, AddData) and event.new_data is not None]
        tables = [self._read(each) for each in [*slices, *self.staged]]
        return pa.concat_tables(tables, promote_options="default") if tables else None

    def _read(self, described: DataSlice) -> pa.Table:
        with self.store.objects.open_file(ObjectKind.DATA, described.physical_hash) as file:
            batches = list(read_slice(file, vocabulary=self.vocabulary))
        return pa.Table.from_batches([batch.replace_schema_metadata(None) for batch in batches])


def table(**columns: Any) -> pa.Table:
    """Rows with an event time, null unless given."""
    count = len(next(iter(columns.values())))
    times = {} if "event_time" in columns else {"event_time": pa.nulls(count, TIME)}
    return pa.table(times | columns)
