"""One batch: raw messages in, the rows of a slice and what the block says of them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.ingest.final_rows import (
    data_schema_with,
    event_times,
    final_rows,
    normalized,
    sorted_by_time,
    with_key_columns,
)
from odf_common.ingest.merge import KeyIndex, merge
from odf_common.ingest.messages import Unreadable
from odf_common.ingest.source import SourcePlan, check_columns
from odf_common.metadata.events import SetDataSchema
from odf_common.timestamp import Timestamp

Preprocess = Callable[[pa.Table], pa.Table]
"""The queries of a source: the table `input` in, the output of the last query out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What becomes of a batch of messages. `records` = rows + `duplicates` + `unreadable`."""

    rows: pa.Table | None
    """All columns in their final order and types, ready for the slice writer; None if nothing is new."""
    set_data_schema: SetDataSchema | None
    """The dataset's first schema, or one with new columns."""
    data_schema: pa.Schema | None
    """The dataset's columns after this batch: what the plan of the next one needs."""
    messages: int
    records_read: int
    """Records in the messages, before any query."""
    records: int
    duplicates: int
    unreadable: list[Unreadable]
    max_event_time: Timestamp | None


def make_batch(
    plan: SourcePlan,
    messages: pa.Table,
    *,
    next_offset: int,
    system_time: Timestamp,
    keys: KeyIndex | None = None,
    preprocess: Preprocess | None = None,
) -> Batch:
    """Read, preprocess, merge and complete the rows of messages (schema `MESSAGES`).

    BadInputSchemaError or IncompatibleSchemaError when the columns do not fit the dataset: no batch of the source will.
    """
    if plan.has_preprocess != (preprocess is not None):
        raise ValueError("a preprocess function is given exactly where the source has a preprocess step")
    records = plan.reader.read(messages)
    rows, times = records.rows, records.timestamps
    if preprocess is not None:
        rows = preprocess(rows) if rows.num_rows else pa.table({})
        times = _latest(messages, rows.num_rows)
    rows = normalized(rows, plan.vocabulary)
    check_columns(rows.schema, plan.vocabulary)
    rows = event_times(plan, rows)
    merged = merge(plan.source.merge, with_key_columns(plan, rows), keys)
    if merged.kept is not None and merged.duplicates:
        places = pa.array(merged.kept)
        rows, times = rows.take(places), times.take(places)
    schema = data_schema_with(plan, rows.schema) if rows.num_rows or plan.declares_rows else plan.data_schema
    final, largest = None, None
    if rows.num_rows:
        assert schema is not None
        rows = sorted_by_time(rows, times, plan.vocabulary, fallback=system_time)
        final, largest = final_rows(plan, schema, rows, next_offset, system_time)
    return Batch(
        rows=final,
        set_data_schema=None if schema is plan.data_schema else _event(schema),
        data_schema=schema,
        messages=messages.num_rows,
        records_read=records.count,
        records=rows.num_rows + merged.duplicates + len(records.unreadable),
        duplicates=merged.duplicates,
        unreadable=records.unreadable,
        max_event_time=largest,
    )


def _event(schema: pa.Schema) -> SetDataSchema:
    return SetDataSchema(raw_arrow_schema=encode_arrow_schema(schema))


def _latest(messages: pa.Table, count: int) -> pa.ChunkedArray:
    """Rows of a query belong to no message: the newest one tells the time for all."""
    latest = pc.max(messages["timestamp"])
    return pa.chunked_array([pa.repeat(latest, count)])
