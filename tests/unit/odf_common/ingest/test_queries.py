from __future__ import annotations

import pytest

from odf_common.ingest.queries import QueryRefusedError, check_preprocess, normalized
from odf_common.metadata.transforms import SqlQueryStep, TemporalTable, TransformSql


def spark(*queries: str, **aliased: str) -> TransformSql:
    steps = [SqlQueryStep(alias=alias, query=query) for alias, query in aliased.items()]
    return TransformSql(engine="spark", queries=(*steps, *(SqlQueryStep(query=query) for query in queries)))


def refusal(transform: TransformSql) -> str:
    with pytest.raises(QueryRefusedError) as refused:
        check_preprocess(transform)
    return str(refused.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM input",
        "select a, upper(b) as b from `input` where c rlike 'x' order by a;",
        "WITH x AS (SELECT * FROM input), y AS (SELECT * FROM x) SELECT * FROM y UNION ALL SELECT * FROM x",
        "SELECT * FROM input LATERAL VIEW explode(items) t AS item",
        "SELECT * FROM input JOIN (VALUES (1, 'a')) AS names(id, name) USING (id)",
        "SELECT i.* FROM input i, LATERAL (SELECT max(x) FROM input) m",
        "SELECT (SELECT count(*) FROM input) AS n FROM range(10)",
        "FROM input SELECT a",
        "SELECT 'drop table x; select reflect(1)' AS text FROM input -- ; drop table input",
        "SELECT to_timestamp(t) AS event_time, try_cast(x AS INT) FROM input",
        "(SELECT 1)",
    ],
)
def test_a_query_over_the_input_is_taken(query: str) -> None:
    assert check_preprocess(spark(query)) == (SqlQueryStep(query=query),)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("DROP TABLE input", "DROP"),
        ("CREATE TEMP VIEW x AS SELECT 1", "CREATE"),
        ("INSERT INTO input SELECT 1", "INSERT"),
        ("DELETE FROM input", "DELETE"),
        ("SET x = 1", "SET"),
        ("CACHE TABLE input", "CACHE"),
        ("SHOW TABLES", "SHOW"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "EXECUTE"),
        ("WITH x AS (INSERT INTO input SELECT 1) SELECT * FROM x", "INSERT"),
        ("SELECT * INTO x FROM input", "INTO"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("SELECT * FROM", "not SQL"),
        ("SELECT * FROM secrets", "the table 'secrets'"),
        ("SELECT (SELECT max(x) FROM secrets) FROM input", "the table 'secrets'"),
        ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x), x", "the table 'x'"),
        ("WITH x AS (SELECT * FROM x) SELECT * FROM x", "the table 'x'"),
        ("SELECT * FROM parquet.`/etc/passwd`", "no files"),
        ("SELECT * FROM csv.`s3://bucket/x`", "no files"),
        ("SELECT * FROM catalog.db.input", "no catalogs"),
        ("SELECT * FROM input VERSION AS OF 1", "no catalogs"),
        ("SELECT * FROM IDENTIFIER('parquet.`/x`')", "function identifier"),
        ("SELECT * FROM read_files('/x')", "function read_files"),
        ("SELECT reflect('java.lang.System', 'exit', 1) FROM input", "function reflect"),
        ("SELECT `java_method`('x', 'y') FROM input", "function java_method"),
        ("SELECT system.builtin.try_reflect('x', 'y') FROM input", "function try_reflect"),
        ("SELECT TRANSFORM (a) USING 'cat' AS (b) FROM input", "runs a program"),
        ("(" * 5_000 + "SELECT 1" + ")" * 5_000, "too deeply"),
        ("SELECT '" + "x" * 200_000 + "'", "at most"),
    ],
)
def test_everything_else_is_refused(query: str, reason: str) -> None:
    assert reason in refusal(spark(query))


def test_steps_read_the_steps_before_them() -> None:
    transform = spark("SELECT * FROM second", first="SELECT * FROM input", second="SELECT * FROM first, input")
    assert check_preprocess(transform) == transform.queries
    early = spark("SELECT * FROM first", first="SELECT * FROM second", second="SELECT * FROM input")
    assert "query 'first': it reads the table 'second'" in refusal(early)


@pytest.mark.parametrize("alias", ["input", "INPUT", "a.b", "a`b", ""])
def test_an_alias_is_a_new_simple_name(alias: str) -> None:
    transform = TransformSql(
        engine="spark", queries=(SqlQueryStep(alias=alias, query="SELECT 1"), SqlQueryStep(query="SELECT 1"))
    )
    assert repr(alias) in refusal(transform)


def test_other_engines_and_temporal_tables_are_refused_with_a_hint() -> None:
    assert "engine: spark" in refusal(TransformSql(engine="datafusion", query="SELECT 1"))
    tables = (TemporalTable(name="input", primary_key=("a",)),)
    assert "temporalTables" in refusal(TransformSql(engine="spark", query="SELECT 1", temporal_tables=tables))


def test_a_single_query_becomes_the_only_step() -> None:
    single = TransformSql(engine="spark", query="SELECT 1")
    assert normalized(single) == spark("SELECT 1")
    assert normalized(spark("SELECT 1")) == spark("SELECT 1")


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        (TransformSql(engine="spark", query="SELECT 1", queries=(SqlQueryStep(query="SELECT 1"),)), "not both"),
        (TransformSql(engine="spark"), "needs"),
        (TransformSql(engine="spark", queries=()), "needs"),
        (spark("SELECT 1", "SELECT 2"), "only the last"),
        (spark(last="SELECT 1"), "remove 'last'"),
    ],
)
def test_what_cannot_be_brought_into_the_form_of_a_chain_is_refused(transform: TransformSql, reason: str) -> None:
    with pytest.raises(QueryRefusedError, match=reason):
        normalized(transform)
