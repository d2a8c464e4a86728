from __future__ import annotations

import pytest

from odf_common.ingest.errors import BadInputSchemaError, UnsupportedSourceError
from odf_common.ingest.source import check_source
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    ReadStep,
    ReadStepCsv,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdJson,
)
from odf_common.metadata.transforms import SqlQueryStep, TransformSql


def check(read: ReadStep, merge: MergeStrategy | None = None, preprocess: TransformSql | None = None) -> None:
    source = AddPushSource(source_name="s", read=read, merge=merge or MergeStrategyAppend(), preprocess=preprocess)
    check_source(source, DatasetVocabulary())


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (ReadStepGeoJson(), "GeoJson takes no messages: use NdJson, Json or Csv"),
        (ReadStepNdJson(date_format="dd.MM"), "dateFormat 'dd.MM' is not supported"),
        (ReadStepJson(timestamp_format="x"), "timestampFormat"),
        (ReadStepNdJson(encoding="latin1"), "encoding 'latin1'"),
        (ReadStepNdJson(ddl_schema=("a MAP<STRING, INT>",)), "column 'a': JSON has no form for the type map"),
        (ReadStepNdJson(ddl_schema=("a STRUCT<b: BINARY>",)), "column 'a.b': JSON has no form"),
        (ReadStepNdJson(ddl_schema=("a ARRAY<STRUCT<b: INT>>",)), "column 'a': the logical hash has no form"),
        (ReadStepNdJson(ddl_schema=("a WHAT",)), "the schema of the read step"),
        (ReadStepCsv(ddl_schema=("a ARRAY<INT>",)), "column 'a': CSV has no form"),
        (ReadStepCsv(null_value="NA"), "nullValue 'NA'"),
        (ReadStepCsv(separator="::"), "separator '::'"),
        (ReadStepCsv(separator='"'), "different characters"),
        (ReadStepCsv(quote="»"), "quote"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_name(read: ReadStep, reason: str) -> None:
    with pytest.raises(UnsupportedSourceError) as refused:
        check(read)
    assert reason in str(refused.value)


def test_merge_strategies_to_come_are_refused() -> None:
    with pytest.raises(UnsupportedSourceError, match="Snapshot is not supported yet"):
        check(ReadStepNdJson(), MergeStrategySnapshot(primary_key=("a",)))
    with pytest.raises(UnsupportedSourceError, match="primaryKey"):
        check(ReadStepNdJson(), MergeStrategyLedger(primary_key=()))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [(("op INT",), "system column"), (("event_time BIGINT",), "DATE or TIMESTAMP"), (("a INT",), "'key'")],
)
def test_columns_must_leave_room_for_those_of_the_system(columns: tuple[str, ...], reason: str) -> None:
    read, merge = ReadStepNdJson(ddl_schema=columns), MergeStrategyLedger(primary_key=("key",))
    with pytest.raises(BadInputSchemaError, match=reason):
        check(read, merge)
    check(read, merge, TransformSql(engine="spark", queries=(SqlQueryStep(query="select 1 as key"),)))


@pytest.mark.parametrize(
    "read", [ReadStepNdJson(), ReadStepJson(sub_path="a.b"), ReadStepCsv(encoding="UTF-8", escape="\\")]
)
def test_what_can_be_read_is_accepted(read: ReadStep) -> None:
    check(read, MergeStrategyLedger(primary_key=("a",)))
