from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.data.ddl import MAX_DEPTH, format_ddl, parse_ddl
from odf_common.data.errors import UnsupportedTypeError
from odf_common.errors import InvalidTextError

UTC_MS = pa.timestamp("ms", "UTC")

TYPES = {
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "INT UNSIGNED": pa.uint32(),
    "BIGINT UNSIGNED": pa.uint64(),
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "DECIMAL(5)": pa.decimal128(5, 0),
    "decimal ( 39 , -3 )": pa.decimal256(39, -3),
    "NUMERIC(4, 1)": pa.decimal128(4, 1),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "DOUBLE PRECISION": pa.float64(),
    "UUID": pa.uuid(),
    "STRING": pa.string(),
    "VARCHAR(20)": pa.string(),
    "CHAR(2)": pa.string(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "BINARY(16)": pa.binary(16),
    "VARBINARY(16)": pa.binary(),
    "BYTEA": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
    "TIME(0)": pa.time32("s"),
    "TIME(6)": pa.time64("us"),
    "TIMESTAMP": UTC_MS,
    "TIMESTAMP(0)": pa.timestamp("s", "UTC"),
    "TIMESTAMP(3)": UTC_MS,
    "TIMESTAMP(6)": pa.timestamp("us", "UTC"),
    "TIMESTAMP(9)": pa.timestamp("ns", "UTC"),
    "TIMESTAMP WITH TIME ZONE": UTC_MS,
    "TIMESTAMP(6) WITHOUT TIME ZONE": pa.timestamp("us", "UTC"),
    "TIMESTAMPTZ": UTC_MS,
    "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<INT NOT NULL>": pa.list_(pa.field("item", pa.int32(), nullable=False)),
    "STRUCT<a: INT, b: ARRAY<STRING>>": pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
    'struct<a int not null, "b c" date>': pa.struct([pa.field("a", pa.int32(), nullable=False), ("b c", pa.date32())]),
    "MAP<STRING, ARRAY<INT>>": pa.map_(pa.string(), pa.list_(pa.int32())),
}


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_read(text: str) -> None:
    assert parse_ddl([f"x {text}"]).field("x") == pa.field("x", TYPES[text])


@pytest.mark.parametrize("text", TYPES)
def test_what_was_read_is_written_and_read_again(text: str) -> None:
    schema = parse_ddl([f"x {text} NOT NULL"])
    assert parse_ddl(format_ddl(schema)).equals(schema)


NAMES = {
    "population BIGINT": "population",
    '"a b" BIGINT': "a b",
    '"say ""hi""" BIGINT': 'say "hi"',
    "`a-b` BIGINT": "a-b",
    "größe BIGINT": "größe",
    "bigint bigint": "bigint",
    "not BIGINT": "not",
    " \t_1\nBIGINT ": "_1",
}


@pytest.mark.parametrize("text", NAMES)
def test_a_name_is_read(text: str) -> None:
    assert parse_ddl([text]).equals(pa.schema([(NAMES[text], pa.int64())]))


def test_columns_keep_their_order_and_their_case() -> None:
    assert parse_ddl(["B INT", "a INT, b INT NULL"]).names == ["B", "a", "b"]


def test_no_columns_are_an_empty_schema() -> None:
    assert parse_ddl([]).equals(pa.schema([]))


WRONG = [
    ("", 0, "expected a name"),
    ("x", 1, "expected a type, found the end"),
    ("x WIBBLE", 2, "there is no type WIBBLE"),
    ("x INT INT", 6, "expected ',' or the end"),
    ("x INT,", 6, "expected a name"),
    ("x INT NOT", 9, "expected 'NULL'"),
    ("a-b INT", 1, "expected a name, a type or one of"),
    ('"never closed INT', 0, "expected a name, a type or one of"),
    ("x DECIMAL", 9, r"expected '\('"),
    ("x DECIMAL(77)", 10, "expected a number from 1 to 76"),
    ("x DECIMAL(5, 6)", 13, "expected a number from -5 to 5"),
    ("x TIMESTAMP(4)", 12, "0, 3, 6 or 9"),
    ("x TIMESTAMP WITH ZONE", 17, "expected 'TIME'"),
    ("x BINARY(0)", 9, "expected a number from 1"),
    ("x ARRAY<INT", 11, "expected '>'"),
    ("x STRUCT<>", 9, "expected a name"),
    ("x STRUCT<a, b>", 10, "expected a type, found ','"),
    ("x INT; DROP", 5, "expected a name, a type or one of"),
    ("x INT, x INT", 7, "two columns 'x'"),
    ("x " + "ARRAY<" * 40, 2 + 6 * (MAX_DEPTH + 1), "more than 32 types"),
]


@pytest.mark.parametrize(("text", "position", "reason"), WRONG)
def test_an_error_points_at_the_first_character_that_is_wrong(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidTextError, match=reason) as caught:
        parse_ddl([text])
    assert caught.value.position == position


def test_types_may_lie_as_deep_as_promised() -> None:
    text = "x " + "ARRAY<" * MAX_DEPTH + "INT" + ">" * MAX_DEPTH
    assert format_ddl(parse_ddl([text])) == (text,)


@pytest.mark.parametrize(
    "unsaid",
    [
        pa.float16(),
        pa.duration("s"),
        pa.timestamp("ms"),
        pa.timestamp("ms", "Europe/Paris"),
        pa.list_(pa.int8(), 2),
        pa.null(),
        pa.struct([]),
    ],
    ids=str,
)
def test_a_type_that_ddl_has_no_words_for_is_refused(unsaid: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column 'x\.item': DDL has no form"):
        format_ddl(pa.schema([("x", pa.list_(unsaid))]))


def test_layouts_are_forgotten() -> None:
    schema = pa.schema([("a", pa.large_string()), ("b", pa.decimal32(5, 2)), ("c", pa.large_list(pa.binary_view()))])
    assert format_ddl(schema) == ("a STRING", "b DECIMAL(5, 2)", "c ARRAY<BINARY>")


PLAIN = [pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
PLAIN += [pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.binary(7), pa.uuid(), pa.date32()]
PLAIN += [
    pa.decimal128(38, 10),
    pa.decimal256(76, -3),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
]
PLAIN += [pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")]


def fields(kinds: st.SearchStrategy[pa.DataType], name: st.SearchStrategy[str]) -> st.SearchStrategy[pa.Field]:
    return st.builds(pa.field, name, kinds, st.booleans())


def nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return (
        st.builds(pa.list_, fields(kinds, st.just("item")))
        | st.builds(pa.map_, kinds, fields(kinds, st.just("value")))
        | st.lists(fields(kinds, st.text(max_size=4)), min_size=1, max_size=3).map(pa.struct)
    )


COLUMNS = fields(st.recursive(st.sampled_from(PLAIN), nested, max_leaves=5), st.text(max_size=8))


@given(st.lists(COLUMNS, max_size=4, unique_by=lambda field: field.name))
def test_any_columns_come_back(columns: list[pa.Field]) -> None:
    schema = pa.schema(columns)
    assert parse_ddl(format_ddl(schema)).equals(schema)


WORDS = st.sampled_from(
    [*" \n,:()<>\"`;-'", "a", "x INT", "NOT NULL", "STRUCT<", "ARRAY<", "DECIMAL(", "3", "TIMESTAMP"]
)


@given(st.text() | st.lists(WORDS).map(" ".join))
def test_any_text_is_read_or_refused_with_a_position_in_it(text: str) -> None:
    try:
        schema = parse_ddl([text])
    except InvalidTextError as error:
        position = error.position
    else:
        position = 0
        assert parse_ddl(format_ddl(schema)).equals(schema)
    assert 0 <= position <= len(text)
