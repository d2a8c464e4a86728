from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from odf_common.ingest.batch import Batch, make_batch
from odf_common.ingest.errors import IncompatibleSchemaError
from odf_common.ingest.evolution import check_evolution, shown_schema
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import MergeStrategyAppend, MergeStrategyUpsertStream, ReadStepNdJson
from odf_common.metadata.transforms import SqlQueryStep, TransformSql
from tests.unit.odf_common.ingest.sources import COLUMNS, NOW, messages, plan

WORDS = DatasetVocabulary()
QUERY = TransformSql(engine="spark", queries=(SqlQueryStep(query="select * from input"),))
ANY = ReadStepNdJson()


def batch(of: SourcePlan, *records: dict[str, Any], **arguments: Any) -> Batch:
    values = [json.dumps(record).encode() for record in records]
    return make_batch(of, messages(*values), next_offset=0, system_time=NOW, **arguments)


def known(*columns: str) -> pa.Schema:
    """The schema of a dataset whose first source declared these."""
    schema = batch(plan(ReadStepNdJson(ddl_schema=columns)), {}).data_schema
    assert schema is not None
    return schema


def source(*columns: str, name: str = "default", preprocess: TransformSql | None = None) -> AddPushSource:
    read = ReadStepNdJson(ddl_schema=columns or None)
    return AddPushSource(source_name=name, read=read, merge=MergeStrategyAppend(), preprocess=preprocess)


WRONG = [
    (("event_time TIMESTAMP", "city STRING"), "column 'population' is missing"),
    (("event_time TIMESTAMP", "city STRING", "inhabitants BIGINT"), "column 'population' is missing"),
    (("event_time TIMESTAMP", "city STRING", "population STRING"), "'population' is STRING, in the dataset it is BIG"),
    (("event_time TIMESTAMP", "city STRING", "population INT"), "'population' is INT, in the dataset it is BIGINT"),
    (("event_time DATE", "city STRING", "population BIGINT"), "'event_time' is DATE, in the dataset it is TIMEST"),
]


@pytest.mark.parametrize(("columns", "reason"), WRONG)
def test_a_source_must_bring_the_columns_of_its_dataset(columns: tuple[str, ...], reason: str) -> None:
    schema = known(*COLUMNS)
    with pytest.raises(IncompatibleSchemaError) as refused:
        check_evolution(source(*columns), WORDS, schema)
    text = str(refused.value)
    assert reason in text
    assert "The dataset has: event_time TIMESTAMP(3), city STRING, population BIGINT." in text
    assert "The source 'default' brings: event_time" in text
    with pytest.raises(IncompatibleSchemaError, match="columns may be added, never removed"):
        batch(plan(ReadStepNdJson(ddl_schema=columns), data_schema=schema), {"city": "a"})


@pytest.mark.parametrize(
    "columns",
    [
        COLUMNS,
        (*COLUMNS, "area DOUBLE"),
        ("area DOUBLE", *reversed(COLUMNS)),
        ("city STRING NOT NULL", "population BIGINT"),
        (),
    ],
)
def test_new_columns_another_order_and_no_event_time_are_fine(columns: tuple[str, ...]) -> None:
    check_evolution(source(*columns), WORDS, known(*COLUMNS))
    check_evolution(source(*columns), WORDS, None)


def test_what_a_query_brings_is_known_with_the_data_only() -> None:
    schema = known(*COLUMNS)
    check_evolution(source("x INT", preprocess=QUERY), WORDS, schema)
    of = plan(ReadStepNdJson(ddl_schema=("x INT",)), data_schema=schema, preprocess=QUERY)
    with pytest.raises(IncompatibleSchemaError, match="'city' is missing"):
        batch(of, {"x": 1}, preprocess=lambda rows: rows)


def test_members_of_structs_may_be_added_and_not_removed() -> None:
    schema = known("s STRUCT<a: INT, b: STRING>")
    check_evolution(source("s STRUCT<a: INT, b: STRING, c: INT>"), WORDS, schema)
    with pytest.raises(IncompatibleSchemaError, match="'s' is STRUCT"):
        check_evolution(source("s STRUCT<a: INT>"), WORDS, schema)


def test_columns_of_other_sources_may_be_missing() -> None:
    old, new = source("city STRING"), source("city STRING", "area DOUBLE", name="new")
    schema = known("city STRING", "area DOUBLE")
    with pytest.raises(IncompatibleSchemaError, match="'area' is missing"):
        check_evolution(old, WORDS, schema, others=[old])
    check_evolution(old, WORDS, schema, others=[old, new])
    made = batch(SourcePlan.of(old, WORDS, schema, others=[old, new]), {"city": "a"})
    assert made.rows is not None
    assert made.rows["area"].to_pylist() == [None]
    required = known("city STRING", "area DOUBLE NOT NULL")
    with pytest.raises(IncompatibleSchemaError, match="'area' is missing"):
        batch(SourcePlan.of(old, WORDS, required, others=[new]), {"city": "a"})


def test_inferred_columns_come_and_stay_away_but_only_where_they_may() -> None:
    first = batch(plan(ANY), {"a": 1, "b": 2})
    assert first.data_schema is not None
    of = plan(ANY).evolved(first.data_schema)
    assert batch(of, {"a": 1}, accept_new_columns=False).set_data_schema is None
    assert batch(of, {"a": 1, "c": 1}).set_data_schema is not None
    with pytest.raises(IncompatibleSchemaError, match="column 'c' is new, and this source may bring no new columns"):
        batch(of, {"a": 1, "c": 1}, accept_new_columns=False)
    declared = plan(ReadStepNdJson(ddl_schema=("a BIGINT", "b BIGINT", "c BIGINT")), data_schema=first.data_schema)
    assert batch(declared, {"a": 1}, accept_new_columns=False).set_data_schema is not None


def test_operations_are_no_column_of_the_dataset() -> None:
    upserts = MergeStrategyUpsertStream(primary_key=("city",))
    schema = known(*COLUMNS)
    read = ReadStepNdJson(ddl_schema=(*COLUMNS, "op INT"))
    check_evolution(AddPushSource(source_name="s", read=read, merge=upserts), WORDS, schema)


def test_schemas_are_shown_in_the_words_of_ddl_where_it_has_any() -> None:
    schema = pa.schema([pa.field("a b", pa.int8(), nullable=False), ("d", pa.duration("s"))])
    assert shown_schema(schema) == "a b TINYINT NOT NULL, d duration[s]"
    assert shown_schema(pa.schema([(str(number), pa.int8()) for number in range(101)])).endswith("99 TINYINT, …")
