from __future__ import annotations

import pytest

from odf_common.ingest.errors import BadInputSchemaError, UnsupportedSourceError
from odf_common.ingest.source import check_source
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStep,
    ReadStepCsv,
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


@pytest.mark.parametrize(
    ("merge", "reason"),
    [
        (MergeStrategyLedger(primary_key=()), "Ledger needs a primaryKey"),
        (MergeStrategySnapshot(primary_key=()), "Snapshot needs a primaryKey"),
        (MergeStrategyUpsertStream(primary_key=()), "UpsertStream needs a primaryKey"),
        (MergeStrategyChangelogStream(primary_key=()), "ChangelogStream needs a primaryKey"),
        (MergeStrategySnapshot(primary_key=("a",), compare_columns=()), "compareColumns .* empty"),
    ],
)
def test_merge_strategies_say_what_they_merge_by(merge: MergeStrategy, reason: str) -> None:
    with pytest.raises(UnsupportedSourceError, match=reason):
        check(ReadStepNdJson(), merge)


KEYED = ("key STRING", "value BIGINT")


@pytest.mark.parametrize(
    ("columns", "merge", "reason"),
    [
        (KEYED, MergeStrategySnapshot(primary_key=("gone",)), "primary key has the column 'gone'"),
        (KEYED, MergeStrategySnapshot(primary_key=("event_time",)), "it would be null in every record"),
        (KEYED, MergeStrategySnapshot(primary_key=("key",), compare_columns=("gone",)), "compareColumns .*'gone'"),
        (KEYED, MergeStrategySnapshot(primary_key=("key",), compare_columns=("op",)), "compareColumns .*'op'"),
        (("key ARRAY<INT>",), MergeStrategyUpsertStream(primary_key=("key",)), "makes no key"),
        (KEYED, MergeStrategyChangelogStream(primary_key=("key",)), "needs the column 'op'"),
        ((*KEYED, "op STRING"), MergeStrategyChangelogStream(primary_key=("key",)), "'op' must be an integer"),
        ((*KEYED, "op DOUBLE"), MergeStrategyUpsertStream(primary_key=("key",)), "'op' must be an integer"),
        ((*KEYED, "op INT"), MergeStrategySnapshot(primary_key=("key",)), "system column"),
        ((*KEYED, "offset INT"), MergeStrategyUpsertStream(primary_key=("key",)), "system column"),
    ],
)
def test_columns_that_a_strategy_cannot_merge_are_refused(
    columns: tuple[str, ...], merge: MergeStrategy, reason: str
) -> None:
    with pytest.raises(BadInputSchemaError, match=reason):
        check(ReadStepNdJson(ddl_schema=columns), merge)


@pytest.mark.parametrize(
    ("columns", "merge"),
    [
        ((*KEYED, "op TINYINT UNSIGNED"), MergeStrategyChangelogStream(primary_key=("key",))),
        (KEYED, MergeStrategyUpsertStream(primary_key=("key",))),
        ((*KEYED, "op INT"), MergeStrategyUpsertStream(primary_key=("key",))),
        (KEYED, MergeStrategySnapshot(primary_key=("key",), compare_columns=("value", "event_time"))),
        (KEYED, MergeStrategyLedger(primary_key=("key", "event_time"))),
    ],
)
def test_columns_that_a_strategy_can_merge_are_accepted(columns: tuple[str, ...], merge: MergeStrategy) -> None:
    check(ReadStepNdJson(ddl_schema=columns), merge)


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
