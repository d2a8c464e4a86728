from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.records import Records
from odf_common.metadata.sources import ReadStepCsv
from tests.unit.odf_common.ingest.sources import letters, messages

COLUMNS = ("a BIGINT", "b STRING")


def read(*values: bytes | None, known: pa.Schema | None = None, **step: Any) -> Records:
    return reader_of(ReadStepCsv(**step), known).read(messages(*values))


def rows(records: Records) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in records.rows.to_pylist()]


def test_columns_are_taken_by_position() -> None:
    records = read(b"\xef\xbb\xbf1,x\r\n2,\r\n\n", b'3,"y, ""z""\nw"', ddl_schema=COLUMNS)
    assert rows(records) == [(1, "x"), (2, None), (3, 'y, "z"\nw')]
    assert records.count == 3


def test_columns_are_taken_by_name_from_the_header_of_each_message() -> None:
    records = read(b"a,b\n1,x\n", b"b,ignored,a\ny,?,2", b"b\nz", b"b,a\n", ddl_schema=COLUMNS, header=True)
    assert rows(records) == [(1, "x"), (2, "y"), (None, "z")]
    assert records.unreadable == []


@pytest.mark.parametrize("header", [b"1,x", b"a,a", b"a,", b'"a'])
def test_a_message_without_its_header_is_one_dead_letter(header: bytes) -> None:
    records = read(b"a,b\n1,x", header + b"\n5,6", b"a,b\n2,y", ddl_schema=COLUMNS, header=True)
    assert rows(records) == [(1, "x"), (2, "y")]
    assert letters(records.unreadable) == [(1, None, "InvalidCsv")]


def test_bad_rows_are_dead_letters_and_the_others_are_rows() -> None:
    records = read(
        b"1,x\n2\n3,x,y\nfour,x\n5,\xff\n6,x", b'7,"open\n8,x\n', None, b'9,"x"y\n', b"10,x", b"", ddl_schema=COLUMNS
    )
    assert rows(records) == [(1, "x"), (6, "x"), (8, "x"), (10, "x")]
    assert letters(records.unreadable) == [
        (0, 1, "InvalidCsv"),
        (0, 2, "InvalidCsv"),
        (0, 3, "WrongType"),
        (0, 4, "InvalidUtf8"),
        (1, 0, "InvalidCsv"),
        (2, None, "Tombstone"),
        (3, 0, "InvalidCsv"),
        (5, None, "EmptyMessage"),
    ]
    assert records.unreadable[2].reason == "column 'a': expected BIGINT, found 'four'"
    assert records.unreadable[2].data == b"four,x"


@pytest.mark.parametrize("text", ["9223372036854775808", "0x1F", "1.0", " 1", "NaN"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    assert letters(read(f"{text},x".encode(), ddl_schema=COLUMNS).unreadable) == [(0, 0, "WrongType")]


@pytest.mark.parametrize("text", ["NaN", "inf", "1e999", "0x1"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    assert letters(read(text.encode(), ddl_schema=("a DOUBLE",)).unreadable) == [(0, 0, "WrongType")]


def test_types_follow_the_schema() -> None:
    step = ("t TIMESTAMP", "b BOOLEAN", "n DECIMAL(5, 2)", "f DOUBLE", "d DATE", "r STRING NOT NULL")
    records = read(b"2020-01-01 00:00:00,TRUE,1.5,.5,2020-01-01,x\n,,,,,\n", ddl_schema=step)
    assert rows(records)[0][0] == datetime(2020, 1, 1, tzinfo=UTC)
    assert letters(records.unreadable) == [(0, 1, "WrongType")]


def test_separator_quote_and_escape_can_be_chosen() -> None:
    records = read(b"1;'x\\';y'\n2;a\\;b", ddl_schema=COLUMNS, separator=";", quote="'", escape="\\")
    assert rows(records) == [(1, "x';y"), (2, "a;b")]


def test_without_schema_all_are_texts() -> None:
    records = read(b"1,x\n", b"2\n", b"3,y\n")
    assert records.rows.to_pylist() == [{"column_1": "1", "column_2": "x"}, {"column_1": "3", "column_2": "y"}]
    assert letters(records.unreadable) == [(1, 0, "InvalidCsv")]


def test_types_can_be_inferred() -> None:
    text = b"event_time,i,f,b,s,n,offset\n1577836800,1,1.5,true,x,,3\n2020-01-01T00:00:00Z,2,2,false,1,,4\n"
    records = read(text, header=True, infer_schema=True)
    assert [(field.name, str(field.type)) for field in records.rows.schema] == [
        ("event_time", "timestamp[ms, tz=UTC]"), ("i", "int64"), ("f", "double"), ("b", "bool"), ("s", "string"),
        ("_offset", "int64"),
    ]  # fmt: skip
    assert records.rows["event_time"].to_pylist() == [datetime(2020, 1, 1, tzinfo=UTC)] * 2
    later = read(b"offset,i\nx,1\n7,1", header=True, infer_schema=True, known=records.rows.schema)
    assert later.rows["_offset"].to_pylist() == [7]
    assert letters(later.unreadable) == [(0, 0, "WrongType")]


cell = st.text(st.sampled_from('a1,;"\n\r \\é'), max_size=4)


@given(st.lists(st.lists(st.tuples(cell, cell), min_size=1, max_size=4), max_size=4))
def test_what_python_writes_is_read(batch: list[list[tuple[str, str]]]) -> None:
    written = []
    for table in batch:
        text = io.StringIO(newline="")
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows(table)
        written.append(text.getvalue().encode())
    records = read(*written, ddl_schema=("a STRING", "b STRING"))
    assert rows(records) == [row for table in batch for row in table]


@given(
    st.lists(
        st.lists(st.sampled_from([b'"', b",", b"\n", b"a", b"1", b'""', b"\r\n", b"\xff"]), max_size=8).map(b"".join)
    )
)
def test_a_batch_is_read_as_each_message_alone(values: list[bytes]) -> None:
    together = read(*values, ddl_schema=COLUMNS)
    reader = reader_of(ReadStepCsv(ddl_schema=COLUMNS), None)
    alone = [reader.read(messages(value, start=number)) for number, value in enumerate(values)]
    assert rows(together) == [row for records in alone for row in rows(records)]
    assert letters(together.unreadable) == [place for records in alone for place in letters(records.unreadable)]


@pytest.mark.parametrize("separator", ["\t", " ", "|", "^", "-", "]", "#", "."])
@pytest.mark.parametrize("escape", [None, "\\", "^", "-"])
def test_any_character_may_be_the_separator_or_escape(separator: str, escape: str | None) -> None:
    if separator == escape:
        return
    text = f'"1"{separator}"a{separator}b"\n2{separator}"c\nd"\n3{separator}x'.encode()
    for values in ([text], [text, b'"4"' + separator.encode() + b'"y"']):
        records = read(*values, ddl_schema=COLUMNS, separator=separator, escape=escape)
        assert rows(records)[:3] == [(1, f"a{separator}b"), (2, "c\nd"), (3, "x")]
        assert records.unreadable == []


def test_many_bad_cells_are_dead_letters() -> None:
    records = read(*[b"x,a", b"1,b", b"99999999999999999999,c"] * 500, ddl_schema=COLUMNS)
    assert rows(records) == [(1, "b")] * 500
    assert [letter.offset % 3 for letter in records.unreadable] == [0, 2] * 500


def test_days_and_times_are_inferred_where_all_are() -> None:
    text = (
        b"d,t,mixed,empty,n\n2020-01-01,2020-01-01T00:00:00.123456Z,2020-01-01,,1\n"
        b"2020-01-02,2020-01-01 00:00:00,x,,2020-01-01\n"
    )
    records = read(text, header=True, infer_schema=True)
    assert [(field.name, str(field.type)) for field in records.rows.schema] == [
        ("d", "date32[day]"),
        ("t", "timestamp[ms, tz=UTC]"),
        ("mixed", "string"),
        ("n", "string"),
    ]


def test_mixed_values_in_a_column_are_dead_letters_that_name_it() -> None:
    records = read(b"1,x\n2.5,y\nthree,z\n", ddl_schema=COLUMNS)
    assert [(letter.index, letter.reason) for letter in records.unreadable] == [
        (1, "column 'a': expected BIGINT, found '2.5'"),
        (2, "column 'a': expected BIGINT, found 'three'"),
    ]


def test_a_row_with_a_nul_byte_is_a_dead_letter() -> None:
    records = read(b"1,x\n2,\0\n3,z", ddl_schema=COLUMNS)
    assert rows(records) == [(1, "x"), (3, "z")]
    assert records.unreadable[0].reason == "the row holds a NUL byte: send text in UTF-8"


def test_what_follows_keeps_the_types_that_were_inferred() -> None:
    reader = reader_of(ReadStepCsv(header=True, infer_schema=True), None)
    first = reader.read(messages(b"a,offset\n1.5,1\n"))
    second = reader.following(first.rows.schema).read(messages(b"a,offset\n2,2\nx,3\n"))
    assert second.rows.schema == first.rows.schema
    assert second.rows.to_pylist() == [{"a": 2.0, "_offset": 2}]
