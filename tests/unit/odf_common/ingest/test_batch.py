from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.chain.schema_evolution import incompatibility, inconsistency
from odf_common.chain.state import logical_schema
from odf_common.data.arrow_types import to_arrow
from odf_common.data.slice_writer import SliceWriter
from odf_common.ingest.batch import Batch, make_batch
from odf_common.ingest.errors import BadInputSchemaError
from odf_common.ingest.merge import merge_keys
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import MergeStrategyLedger, ReadStepCsv, ReadStepNdJson
from odf_common.metadata.transforms import SqlQueryStep, TransformSql
from odf_common.timestamp import Timestamp
from tests.unit.odf_common.ingest.sources import COLUMNS, NOW, KeysInMemory, letters, messages, plan

ANY = ReadStepNdJson()
LEDGER = MergeStrategyLedger(primary_key=("event_time", "city"))
QUERY = TransformSql(engine="spark", queries=(SqlQueryStep(query="select * from input"),))


def batch(of: SourcePlan, *values: bytes | None, next_offset: int = 0, **arguments: Any) -> Batch:
    made = make_batch(of, messages(*values), next_offset=next_offset, system_time=NOW, **arguments)
    rows = made.rows.num_rows if made.rows is not None else 0
    assert made.records + made.derived == rows + made.duplicates + len(made.unreadable)
    assert made.messages == len(values)
    return made


def event(city: str, day: str | None = None, **more: Any) -> bytes:
    time = {} if day is None else {"event_time": f"2020-01-{day}T00:00:00Z"}
    return json.dumps({**time, "city": city, **more}).encode()


def column(made: Batch, name: str) -> list[Any]:
    assert made.rows is not None
    return list(made.rows[name].to_pylist())


def test_rows_get_system_columns_in_the_order_of_event_time() -> None:
    made = batch(plan(), event("c", "03"), event("a", "01"), event("b", "01"), b"x", next_offset=7)
    assert made.rows is not None
    assert made.rows.column_names == ["offset", "op", "system_time", "event_time", "city", "population"]
    assert column(made, "offset") == [7, 8, 9]
    assert column(made, "op") == [0, 0, 0]
    assert column(made, "system_time") == [NOW.to_datetime()] * 3
    assert column(made, "city") == ["a", "b", "c"]
    assert made.max_event_time == Timestamp.parse("2020-01-03T00:00:00Z")
    assert letters(made.unreadable) == [(3, None, "InvalidJson")]


def test_missing_event_times_are_those_of_the_messages() -> None:
    made = batch(plan(), event("old", "01"), event("new"))
    assert column(made, "event_time") == [
        datetime(2023, 11, 14, 22, 13, 20, 1000, UTC),
        datetime(2020, 1, 1, tzinfo=UTC),
    ]
    without = batch(plan(ReadStepNdJson(ddl_schema=("city STRING",))), event("x"))
    assert column(without, "event_time") == [datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)]


def test_rows_without_event_time_stand_before_the_others_in_the_order_of_their_messages() -> None:
    late = b'{"event_time":"2030-01-01T00:00:00Z","city":"late"}'
    assert column(batch(plan(), late, event("a"), event("old", "01"), event("b")), "city") == ["a", "b", "old", "late"]


def test_event_times_may_be_days() -> None:
    of = plan(ReadStepNdJson(ddl_schema=("event_time DATE", "city STRING")))
    made = batch(of, b'{"event_time":"2020-01-02"}', b'{"event_time":null}')
    assert column(made, "event_time") == [date(2023, 11, 14), date(2020, 1, 2)]
    assert made.max_event_time == Timestamp.parse("2023-11-14T00:00:00Z")


def test_times_that_producers_made_up_do_not_become_event_times() -> None:
    made_up = messages(event("x"), b"broken").set_column(
        2, "timestamp", pa.array([2**62, -1]).cast(pa.timestamp("us", "UTC"))
    )
    made = make_batch(plan(), made_up, next_offset=0, system_time=NOW)
    assert made.max_event_time == NOW
    assert made.unreadable[0].timestamp == Timestamp(0)


def test_the_first_batch_brings_the_schema_also_without_rows(tmp_path: Path) -> None:
    made = batch(plan(), None)
    assert made.rows is None
    assert made.set_data_schema is not None
    schema = to_arrow(logical_schema(made.set_data_schema))
    assert schema.names == ["offset", "op", "system_time", "event_time", "city", "population"]
    assert [field.nullable for field in schema] == [False] * 3 + [True] * 3
    assert batch(plan(ANY), None).set_data_schema is None


def test_the_schema_of_the_chain_is_that_of_the_slice(tmp_path: Path) -> None:
    columns = (
        "a STRUCT<x: TIMESTAMP(0), l: ARRAY<TIME(0)>>",
        "t TIME(0)",
        "u UUID",
        "m TIMESTAMP(9) NOT NULL",
        "d DECIMAL(40, 2)",
    )
    made = batch(
        plan(ReadStepNdJson(ddl_schema=columns)),
        b'{"a":{"x":"2020-01-01T00:00:00Z","l":["10:00:00"]},"m":"2020-01-01T00:00:00Z"}',
    )
    assert made.rows is not None
    assert made.set_data_schema is not None
    with SliceWriter(tmp_path / "slice", made.rows.schema) as writer:
        for record_batch in made.rows.to_batches():
            writer.write(record_batch)
    assert writer.schema.equals(made.rows.schema)
    assert made.data_schema is not None
    assert made.data_schema.equals(writer.schema)
    assert inconsistency(logical_schema(made.set_data_schema)) is None


def test_new_columns_evolve_the_schema_and_missing_ones_are_null() -> None:
    first = batch(plan(ANY), event("a", "01"))
    of = plan(ANY).evolved(first.data_schema)
    second = batch(of, event("b", "02", area=1.5, gone=None), b'{"area":2}')
    assert first.set_data_schema is not None
    assert second.set_data_schema is not None
    before, after = logical_schema(first.set_data_schema), logical_schema(second.set_data_schema)
    assert incompatibility(before, after, compare_optionality=True) is None
    assert column(second, "area") == [2.0, 1.5]
    assert column(second, "city") == [None, "b"]
    third = batch(of.evolved(second.data_schema), event("c", "03"))
    assert third.set_data_schema is None
    assert third.data_schema is second.data_schema
    assert column(third, "area") == [None]


def test_a_source_may_declare_new_columns_but_not_other_types() -> None:
    known = batch(plan(), event("a")).data_schema
    wider = batch(plan(ReadStepNdJson(ddl_schema=(*COLUMNS, "area DOUBLE")), data_schema=known), b'{"area":1}')
    assert wider.set_data_schema is not None
    assert column(wider, "area") == [1.0]
    assert column(wider, "population") == [None]


def test_a_schema_without_changes_is_written_once_whatever_its_types() -> None:
    columns = ("a STRUCT<x: TIMESTAMP(0), l: ARRAY<TIME(0)>>", "t TIME(0)", "u UUID", "e TIMESTAMP(6)")
    of = plan(ReadStepNdJson(ddl_schema=columns))
    first = batch(of, b"{}")
    assert first.set_data_schema is not None
    of_chain = to_arrow(logical_schema(first.set_data_schema))
    assert batch(of.evolved(of_chain), b"{}").set_data_schema is None


def test_a_ledger_keeps_what_it_does_not_know() -> None:
    of = plan(merge=LEDGER)
    first = batch(of, event("a", "01"), event("a", "01"), event("b"), state=KeysInMemory())
    assert first.duplicates == 0  # rows of one batch are not compared
    assert first.rows is not None
    index = KeysInMemory(merge_keys(first.rows, LEDGER.primary_key).to_pylist())
    second = batch(of.evolved(first.data_schema), event("a", "01"), event("a", "02"), event("b"), b"x", state=index)
    assert (second.duplicates, column(second, "city")) == (1, ["b", "a"])
    third = batch(of.evolved(first.data_schema), event("a", "01"), state=index)
    assert (third.rows, third.duplicates, third.records) == (None, 1, 1)


def test_a_ledger_bears_records_without_its_key_where_columns_are_inferred() -> None:
    made = batch(plan(ANY, merge=LEDGER), b'{"x":1}', state=KeysInMemory())
    assert made.rows is not None
    assert made.rows.column_names[-1] == "x"


def test_rows_of_a_query_have_the_columns_of_its_output() -> None:
    of = plan(preprocess=QUERY)
    naive = pa.timestamp("us")
    times = pa.array([1_577_836_800_000_999, None], naive)

    def query(table: pa.Table) -> pa.Table:
        return pa.table({"name": table["city"].slice(0, 2), "event_time": times})

    made = batch(of, event("a"), event("b"), event("c"), preprocess=query)
    assert made.records_read == 3
    assert column(made, "event_time")[1] == datetime(2020, 1, 1, tzinfo=UTC)
    assert made.max_event_time == Timestamp.parse("2023-11-14T22:13:20.002Z")
    assert batch(of, event("a"), preprocess=lambda table: table.slice(0, 0)).set_data_schema is None
    with pytest.raises(BadInputSchemaError, match="'op' has the name of a system column"):
        batch(of, event("a"), preprocess=lambda table: pa.table({"op": [1]}))


def test_csv_goes_the_same_way() -> None:
    of = plan(ReadStepCsv(header=True, infer_schema=True))
    made = batch(of, b"event_time,city\n1577836800,a\n", b"city\nb\n")
    assert column(made, "city") == ["b", "a"]


def test_the_vocabulary_names_the_columns() -> None:
    words = DatasetVocabulary(offset_column="nr", event_time_column="at")
    made = batch(plan(ReadStepNdJson(ddl_schema=("at TIMESTAMP", "offset INT")), vocabulary=words), b'{"offset":5}')
    assert made.rows is not None
    assert made.rows.column_names == ["nr", "op", "system_time", "at", "offset"]


events = st.builds(event, st.sampled_from("abc"), st.sampled_from(["01", "02", "03"])) | st.sampled_from(
    [b"x", None, b""]
)


@given(st.lists(events, max_size=12), st.data())
def test_any_cut_into_batches_gives_the_same_rows(values: list[bytes | None], data: st.DataObject) -> None:
    values.sort(key=lambda value: json.loads(value)["event_time"] if value and value[:1] == b"{" else "")
    cut = data.draw(st.integers(0, len(values)))
    of = plan()
    whole = batch(of, *values)
    parts, offset = [], 0
    for part in (values[:cut], values[cut:]):
        parts.append(batch(of, *part, next_offset=offset))
        offset += parts[-1].records - len(parts[-1].unreadable)
    rows = [row for part in parts if part.rows is not None for row in part.rows.to_pylist()]
    assert rows == ([] if whole.rows is None else whole.rows.to_pylist())
    assert len(whole.unreadable) == sum(len(part.unreadable) for part in parts)


def test_a_guard_behind_all_times_lets_all_of_them() -> None:
    made = batch(plan(), event("A", "03"), max_ahead_s=1e300)
    assert made.unreadable == []
    assert made.max_event_time == Timestamp.parse("2020-01-03T00:00:00Z")
