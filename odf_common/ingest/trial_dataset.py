"""A dataset in memory: what of it the next batch builds on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from odf_common.ingest.batch import Batch, Preprocess, ReadRows, batch_of, read_rows
from odf_common.ingest.merge import MergeState, TableRows, latest_rows
from odf_common.ingest.read.records import Records
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.sources import MergeStrategyLedger, MergeStrategySnapshot, MergeStrategyUpsertStream
from odf_common.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDataset:
    """A value: a batch that turns out to be refused leaves the one before."""

    plan: SourcePlan
    slices: tuple[pa.Table, ...] = ()
    next_offset: int = 0
    watermark: Timestamp | None = None

    def batch(
        self,
        records: Records,
        *,
        system_time: Timestamp,
        watermark: Timestamp | None,
        preprocess: Preprocess | None,
    ) -> Batch:
        """What records would add; `watermark` is the dataset's before their payload. Raises what refuses them."""
        read = read_rows(self.plan, records, preprocess=preprocess)
        return batch_of(
            self.plan,
            read,
            messages=1,
            next_offset=self.next_offset,
            system_time=system_time,
            state=self._state(read),
            watermark=watermark,
        )

    def after(self, batch: Batch) -> TrialDataset:
        """With what a batch adds."""
        evolves = batch.data_schema is not None and batch.set_data_schema is not None
        found = [time for time in (self.watermark, batch.max_event_time) if time is not None]
        return replace(
            self,
            plan=self.plan.evolved(batch.data_schema) if evolves and batch.data_schema is not None else self.plan,
            slices=self.slices if batch.rows is None else (*self.slices, batch.rows),
            next_offset=self.next_offset + (0 if batch.rows is None else batch.rows.num_rows),
            watermark=max(found, default=None),
        )

    def _state(self, read: ReadRows) -> MergeState:
        """What rows are compared with."""
        merge, vocabulary = self.plan.source.merge, self.plan.vocabulary
        if read.rows is None:
            return None
        match merge:
            case MergeStrategyLedger():
                return TableRows(self._rows(read.rows.schema), merge.primary_key)
            case MergeStrategyUpsertStream():
                latest = latest_rows(self._rows(read.rows.schema), merge.primary_key, vocabulary)
                return TableRows(latest, merge.primary_key)
            case MergeStrategySnapshot():
                return latest_rows(self._rows(read.rows.schema), merge.primary_key, vocabulary)
            case _:
                return None

    def _rows(self, columns: pa.Schema) -> pa.Table:
        """All rows so far, with nulls in columns that came later."""
        vocabulary = self.plan.vocabulary
        system = (vocabulary.offset_column, vocabulary.operation_type_column)
        if not self.slices:
            others = [column for column in columns if column.name not in system]
            return pa.schema([*(pa.field(name, pa.int64()) for name in system), *others]).empty_table()
        found = pa.concat_tables(self.slices, promote_options="permissive")
        for column in columns:
            if column.name not in found.column_names:
                found = found.append_column(column.name, pa.nulls(found.num_rows, column.type))
        return found
