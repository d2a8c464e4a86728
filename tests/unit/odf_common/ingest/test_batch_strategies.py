from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from odf_common.ingest.batch import Batch, complete, letters_of, make_batch, read_rows
from odf_common.ingest.errors import BadInputSchemaError
from odf_common.ingest.merge import RefusedRowsError, SnapshotRefusedError, TableRows, latest_rows, merge
from odf_common.ingest.messages import Code
from odf_common.ingest.payload_file import read_payload
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepCsv,
    ReadStepJson,
    ReadStepNdJson,
)
from odf_common.metadata.transforms import SqlQueryStep, TransformSql
from odf_common.timestamp import Timestamp
from tests.unit.odf_common.ingest.sources import COLUMNS, NOW, letters, messages, plan

WORDS = DatasetVocabulary()
ANY = ReadStepNdJson()
SNAPSHOT = MergeStrategySnapshot(primary_key=("city",))
UPSERT = MergeStrategyUpsertStream(primary_key=("city",))
CHANGELOG = MergeStrategyChangelogStream(primary_key=("city",))
QUERY = TransformSql(engine="spark", queries=(SqlQueryStep(query="select * from input"),))
KAFKA = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def record(city: str | None, population: int | None = None, **more: Any) -> bytes:
    return json.dumps({"city": city, "population": population, **more}).encode()


def lines(*values: bytes) -> bytes:
    return b"\n".join(values)


def batch(of: SourcePlan, *values: bytes | None, **arguments: Any) -> Batch:
    given: dict[str, Any] = {"next_offset": 0, "system_time": NOW} | arguments
    made = make_batch(of, messages(*values), **given)
    rows = made.rows.num_rows if made.rows is not None else 0
    assert made.records + made.derived == rows + made.duplicates + len(made.unreadable)
    return made


def shown(made: Batch, *columns: str) -> list[tuple[Any, ...]]:
    assert made.rows is not None
    return [tuple(row[name] for name in ("op", *columns)) for row in made.rows.to_pylist()]


def state(*made: Batch) -> pa.Table:
    """The live latest rows of these batches."""
    rows = [one.rows for one in made if one.rows is not None]
    return latest_rows(pa.concat_tables(rows, promote_options="default"), ("city",), WORDS)


def test_corrections_keep_the_times_of_what_they_correct() -> None:
    of = plan(merge=SNAPSHOT)
    first = batch(of, lines(record("a", 1), record("b", 1)), state=pa.table({"city": pa.array([], pa.string())}))
    assert first.set_data_schema is not None
    later = messages(lines(record("a", 2), record("b", 1)), start=1000)
    of = of.evolved(first.data_schema)
    second = make_batch(of, later, next_offset=2, system_time=NOW, state=state(first))
    assert shown(second, "offset", "city", "population", "event_time") == [
        (2, 2, "a", 1, KAFKA),
        (3, 3, "a", 2, KAFKA.replace(second=21)),
    ]
    assert (second.records, second.duplicates, second.derived) == (2, 1, 1)
    assert second.set_data_schema is None


def test_a_snapshot_with_a_record_that_cannot_be_read_is_refused_as_a_whole() -> None:
    of = plan(merge=SNAPSHOT)
    with pytest.raises(SnapshotRefusedError, match=r"record 2: .*; a snapshot is taken as a whole") as refused:
        batch(of, lines(record("a", 1), b"broken", b"too"), state=COLUMNLESS)
    assert refused.value.problem.code == Code.INVALID_JSON
    with pytest.raises(SnapshotRefusedError, match="no value"):
        batch(of, None, state=COLUMNLESS)
    with pytest.raises(SnapshotRefusedError, match="same key"):
        batch(of, lines(record("a", 1), record("a", 2)), state=COLUMNLESS)


COLUMNLESS = pa.table({"city": pa.array([], pa.string())})


@pytest.mark.parametrize(
    ("read", "empty"),
    [
        (ReadStepNdJson(ddl_schema=COLUMNS), b""),
        (ReadStepJson(ddl_schema=COLUMNS), b"[]"),
        (ReadStepCsv(ddl_schema=COLUMNS, header=True), b"event_time,city,population\n"),
    ],
)
def test_an_empty_payload_of_known_columns_is_a_snapshot_of_nothing(read: Any, empty: bytes) -> None:
    first = batch(plan(merge=SNAPSHOT), record("a", 1), state=COLUMNLESS)
    of = plan(read, merge=SNAPSHOT, data_schema=first.data_schema)
    made = batch(of, empty, state=state(first), next_offset=1)
    assert shown(made, "city", "population", "event_time") == [(1, "a", 1, KAFKA)]
    assert (made.records, made.derived, made.unreadable) == (0, 1, [])


def test_an_empty_payload_of_unknown_columns_says_nothing() -> None:
    first = batch(plan(merge=SNAPSHOT), record("a", 1), state=COLUMNLESS)
    made = batch(plan(ReadStepJson(), merge=SNAPSHOT, data_schema=first.data_schema), b"[]", state=state(first))
    assert made.rows is None
    query = plan(merge=SNAPSHOT, data_schema=first.data_schema, preprocess=QUERY)
    nothing = batch(query, record("a", 1), state=state(first), preprocess=lambda rows: rows.slice(0, 0))
    assert nothing.rows is None


@pytest.mark.parametrize("read", [ANY, ReadStepNdJson(ddl_schema=(*COLUMNS, "op INT"))])
def test_a_changelog_brings_its_operations(read: ReadStepNdJson) -> None:
    of = plan(read, merge=CHANGELOG)
    first = batch(of, lines(record("b", 1, op=0), record("a", 1, op=0)))
    assert shown(first, "city") == [(0, "a"), (0, "b")]
    assert first.rows is not None
    assert first.rows.column_names[:4] == ["offset", "op", "system_time", "event_time"]
    assert "_op" not in first.rows.column_names
    second = batch(of.evolved(first.data_schema), lines(record("a", 1, op=2), record("a", 2, op=3)))
    assert shown(second, "city", "population") == [(2, "a", 1), (3, "a", 2)]
    assert second.set_data_schema is None


def test_records_that_cannot_be_merged_become_dead_letters_with_their_own_bytes() -> None:
    good, bad = record("a", 1, op=0), record(None, 1, op=0)
    made = batch(plan(ANY, merge=CHANGELOG), lines(good, bad, b"x"), record("b", 1), record("c", 1, op=9))
    assert letters(made.unreadable) == [
        (0, 1, Code.NULL_KEY),
        (0, 2, Code.INVALID_JSON),
        (1, None, Code.BAD_OPERATION),
        (2, None, Code.BAD_OPERATION),
    ]
    assert [letter.data for letter in made.unreadable] == [bad, b"x", record("b", 1), record("c", 1, op=9)]
    assert "must be 0 (append)" in made.unreadable[2].reason


@pytest.mark.parametrize(
    ("read", "value", "data"),
    [
        (ReadStepJson(ddl_schema=COLUMNS), b'[{"city":"a"},{"city":null}]', b'{"city":null}'),
        (ReadStepCsv(ddl_schema=COLUMNS), b",a,1\n,,2\n", b",,2"),
        (ReadStepCsv(header=True), b"city,population\na,1\n,2\n", b",2"),
    ],
)
def test_all_formats_know_their_records(read: Any, value: bytes, data: bytes) -> None:
    made = batch(plan(read, merge=UPSERT), value, state=TableRows(COLUMNLESS, ("city",)))
    assert [(letter.index, letter.code, letter.data) for letter in made.unreadable] == [(1, Code.NULL_KEY, data)]


def test_records_of_a_payload_count_through_all_its_parts() -> None:
    of = plan(merge=UPSERT)
    records = [record(f"{number:05}", 1) for number in range(2000)]
    records[1500] = record(None, 1500)
    found = []
    for part in read_payload(of.reader, of.source.read, io.BytesIO(lines(*records)), messages(b""), chunk_size=20_000):
        read = read_rows(of, part)
        assert read.rows is not None
        found += letters_of(read, merge(UPSERT, read.rows, TableRows(COLUMNLESS, ("city",)), vocabulary=WORDS))
    assert [(letter.index, letter.code, letter.data) for letter in found] == [(1500, Code.NULL_KEY, records[1500])]


def test_records_without_the_key_column_are_refused_where_columns_are_inferred() -> None:
    made = batch(plan(ANY, merge=UPSERT), b'{"x":1}', state=TableRows(COLUMNLESS, ("city",)))
    assert letters(made.unreadable) == [(0, None, Code.NULL_KEY)]
    assert made.set_data_schema is None
    with pytest.raises(SnapshotRefusedError, match="'city' of the primary key is null"):
        batch(plan(ANY, merge=SNAPSHOT), b'{"x":1}', state=COLUMNLESS)


def test_compared_columns_that_no_record_has_had_are_no_change() -> None:
    strategy = MergeStrategySnapshot(primary_key=("city",), compare_columns=("x",))
    first = batch(plan(ANY, merge=strategy), b'{"city":"a"}', state=COLUMNLESS)
    of = plan(ANY, merge=strategy, data_schema=first.data_schema)
    assert batch(of, b'{"city":"a","y":1}', state=state(first)).duplicates == 1
    assert shown(batch(of, b'{"city":"a","x":1}', state=state(first)), "x") == [(2, None), (3, 1)]
    query = plan(merge=strategy, preprocess=QUERY)
    with pytest.raises(BadInputSchemaError, match="compareColumns has the column 'x'"):
        batch(query, record("a", 1), state=COLUMNLESS, preprocess=lambda rows: rows)


def test_rows_of_a_query_belong_to_no_record() -> None:
    of = plan(merge=UPSERT, preprocess=QUERY)
    with pytest.raises(RefusedRowsError, match="'city' of the primary key is null") as refused:
        batch(of, record(None, 1), state=TableRows(COLUMNLESS, ("city",)), preprocess=lambda rows: rows)
    assert refused.value.problem.code == Code.NULL_KEY
    with pytest.raises(BadInputSchemaError, match="the query gives none"):
        batch(plan(merge=CHANGELOG, preprocess=QUERY), record("a"), preprocess=lambda rows: rows)


def test_operations_and_times_have_the_names_of_the_vocabulary() -> None:
    words = DatasetVocabulary(operation_type_column="kind", event_time_column="at", offset_column="nr")
    of = plan(ANY, merge=CHANGELOG, vocabulary=words)
    made = batch(of, record("a", 1, kind=3, at=1_577_836_800, op="x"), record("a", 1, kind="x"))
    assert made.rows is not None
    assert made.rows.column_names == ["nr", "kind", "system_time", "at", "city", "op", "population"]
    assert made.rows["kind"].to_pylist() == [3]
    assert made.rows["at"].to_pylist() == [datetime(2020, 1, 1, tzinfo=UTC)]
    assert letters(made.unreadable) == [(1, None, Code.WRONG_TYPE)]


def test_upserts_that_lack_a_column_take_its_value_away() -> None:
    of = plan(ANY, merge=UPSERT)
    first = batch(of, b'{"city":"a","x":1}', b'{"city":"b","y":1}', state=TableRows(COLUMNLESS, ("city",)))
    of = of.evolved(first.data_schema)
    second = batch(of, b'{"city":"a"}', state=TableRows(state(first), ("city",)))
    assert shown(second, "city", "x", "y") == [(2, "a", 1, None), (3, "a", None, None)]


def test_duplicates_alone_bring_no_columns() -> None:
    of = plan(ANY, merge=UPSERT)
    first = batch(of, b'{"city":"a"}', state=TableRows(COLUMNLESS, ("city",)))
    of = of.evolved(first.data_schema)
    made = batch(of, b'{"city":"b","new":1,"op":1}', state=TableRows(state(first), ("city",)))
    assert (made.rows, made.set_data_schema, made.duplicates) == (None, None, 1)


def event(day: str) -> bytes:
    return record("a", 1, event_time=f"{day}T00:00:00Z")


def test_event_times_from_the_future_do_not_count_for_the_watermark() -> None:
    values = [event("2024-01-01"), event("2024-01-02"), event("2030-01-01")]
    assert batch(plan(), *values).max_event_time == Timestamp.parse("2030-01-01T00:00:00Z")
    assert batch(plan(), *values, max_ahead_s=86_400).max_event_time == Timestamp.parse("2024-01-02T00:00:00Z")
    assert batch(plan(), *values, max_ahead_s=0).max_event_time == NOW
    guarded = batch(plan(), values[2], max_ahead_s=3600)
    assert guarded.max_event_time is None
    assert guarded.rows is not None


def test_late_rows_are_kept_and_counted() -> None:
    values = [event("2023-12-30"), event("2024-01-01"), event("2023-12-31")]
    mark = Timestamp.parse("2023-12-31T00:00:00Z")
    made = batch(plan(), *values, watermark=mark)
    assert made.late == 1
    assert made.rows is not None
    assert made.rows.num_rows == 3
    assert batch(plan(), *values, watermark=Timestamp(mark.ns + 1)).late == 2
    assert batch(plan(), *values).late == 0


def test_what_is_taken_back_is_not_late() -> None:
    of = plan(merge=SNAPSHOT)
    first = batch(of, event("2020-01-01"), state=COLUMNLESS)
    of = of.evolved(first.data_schema)
    mark = Timestamp.parse("2023-01-01T00:00:00Z")
    changed = record("a", 2, event_time="2024-01-01T00:00:00Z")
    assert batch(of, changed, state=state(first), watermark=mark).late == 0


def test_days_are_filled_guarded_and_late_like_moments() -> None:
    of = plan(ReadStepNdJson(ddl_schema=("event_time DATE", "city STRING")))
    mark = Timestamp.parse("2023-11-14T12:00:00Z")
    made = batch(
        of, b'{"event_time":"2020-01-02"}', b"{}", b'{"event_time":"2030-01-01"}', watermark=mark, max_ahead_s=1
    )
    assert made.rows is not None
    assert made.rows["event_time"].to_pylist() == [date(2023, 11, 14), date(2020, 1, 2), date(2030, 1, 1)]
    assert made.max_event_time == Timestamp.parse("2023-11-14T00:00:00Z")
    assert made.late == 2


def test_merged_rows_may_be_completed_part_by_part() -> None:
    of = plan()
    values = messages(*(event(f"2024-01-{day:02}") for day in (3, 1, 2)), record("n", 1))
    whole = make_batch(of, values, next_offset=5, system_time=NOW)
    read = read_rows(of, of.reader.read(values))
    merged = merge(MergeStrategyAppend(), read.rows, None, vocabulary=WORDS)
    parts = []
    for start, end in ((0, 1), (1, 4)):
        part = type(merged)(
            rows=merged.rows.slice(start, end - start),
            op=merged.op[start:end],
            source_row=merged.source_row[start:end],
        )
        parts.append(
            complete(of, part, times=read.times, schema=read.schema, next_offset=5 + start, system_time=NOW).rows
        )
    assert whole.rows is not None
    assert pa.concat_tables(parts).equals(whole.rows)
    one_time = complete(of, merged, times=read.times[3], schema=read.schema, next_offset=5, system_time=NOW)
    assert one_time.rows is not None
    assert one_time.rows.equals(whole.rows)
