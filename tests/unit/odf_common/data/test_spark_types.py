from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.spark_types import from_spark, to_spark
from odf_common.errors import InvalidTextError

AS_SPARK_DOES = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(38, 10),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.binary(16),
    pa.date32(),
    pa.timestamp("ms", "UTC"),
    pa.timestamp("us", "Europe/Paris"),
    pa.timestamp("us"),
    pa.time64("ns"),
    pa.null(),
]
"""Types for which pyspark's own mapping is the oracle; it knows no unsigned integers, views or 32-bit times."""


def schema_of(kind: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("x", kind, nullable or pa.types.is_null(kind))])


def spark_name(kind: pa.DataType) -> Any:
    return to_spark(schema_of(kind))["fields"][0]["type"]


@pytest.mark.parametrize("kind", AS_SPARK_DOES, ids=str)
@pytest.mark.parametrize("nullable", [True, False])
def test_a_type_becomes_what_pyspark_makes_of_it(kind: pa.DataType, nullable: bool) -> None:
    schema = schema_of(kind, nullable=nullable)
    assert to_spark(schema) == from_arrow_schema(schema).jsonValue()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.date64(), "date"),
        (pa.time32("s"), "time(0)"),
        (pa.time32("ms"), "time(3)"),
        (pa.time64("us"), "time(6)"),
        (pa.decimal32(5, 2), "decimal(5,2)"),
        (pa.decimal256(38, 2), "decimal(38,2)"),
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.uuid(), "binary"),
    ],
    ids=str,
)
def test_a_type_that_spark_has_not_becomes_the_one_it_reads_from_parquet(kind: pa.DataType, name: str) -> None:
    assert spark_name(kind) == name


@pytest.mark.parametrize(
    "kind",
    [
        pa.float16(),
        pa.duration("us"),
        pa.list_(pa.int8(), 2),
        pa.decimal256(39, 0),
        pa.decimal128(5, -2),
        pa.month_day_nano_interval(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_a_type_without_an_equal_in_spark_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column 'x\.element\.y': Spark has no form"):
        spark_name(pa.list_(pa.struct([("y", kind)])))


PLAIN = [kind for kind in AS_SPARK_DOES if not pa.types.is_null(kind)]


def fields(kinds: st.SearchStrategy[pa.DataType], name: str) -> st.SearchStrategy[pa.Field]:
    return st.builds(pa.field, st.just(name), kinds, st.booleans())


def nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    members = st.lists(st.tuples(st.text(max_size=4), kinds, st.booleans()), max_size=3)
    return (
        st.builds(pa.list_, fields(kinds, "element"))
        | st.builds(pa.map_, kinds, fields(kinds, "value"))
        | members.map(lambda chosen: pa.struct([pa.field(*member) for member in chosen]))
    )


KINDS = st.recursive(st.sampled_from(PLAIN), nested, max_leaves=6)


@given(st.lists(st.tuples(st.text(max_size=6), KINDS, st.booleans()), max_size=4))
def test_any_columns_become_what_pyspark_makes_of_them(columns: list[tuple[str, pa.DataType, bool]]) -> None:
    schema = pa.schema([pa.field(*column) for column in columns])
    spark = from_arrow_schema(schema)
    assert to_spark(schema) == spark.jsonValue()
    assert StructType.fromJson(to_spark(schema)) == spark
    assert from_spark(spark.jsonValue()).equals(to_arrow_schema(spark, timezone="UTC"))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"type": "array", "elementType": "long", "containsNull": True},
        {"type": "struct", "fields": [{"name": "x"}]},
        {"type": "struct", "fields": [{"name": "x", "type": 7, "nullable": True}]},
        {"type": "struct", "fields": [{"name": "x", "type": {"type": "array"}, "nullable": True}]},
    ],
)
def test_json_that_is_no_spark_schema_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidTextError, match="Spark schema"):
        from_spark(wrong)


@pytest.mark.parametrize("name", ["variant", "interval day to second", "decimal(39,0)", "time(9)", "LONG"])
def test_a_spark_type_without_an_equal_in_arrow_is_refused(name: str) -> None:
    field = {"name": "x", "type": name, "nullable": True, "metadata": {}}
    with pytest.raises(UnsupportedTypeError, match="column 'x': Arrow has no form"):
        from_spark({"type": "struct", "fields": [field]})
