from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.errors import MalformedBytesError
from odf_common.ingest.payload_file import InvalidPayloadError, read_payload
from odf_common.ingest.pieces import MAX_RECORD_SIZE, RecordTooLargeError
from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.records import Records
from odf_common.metadata.sources import (
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from tests.unit.odf_common.ingest.read.test_shapefile import packed, parts
from tests.unit.odf_common.ingest.sources import messages

COLUMNS = ("a BIGINT", "b STRING")
LINES = ReadStepNdJson(ddl_schema=COLUMNS)
CSV = ReadStepCsv(ddl_schema=COLUMNS)
FEATURE = b'{"type":"Feature","properties":{"a":%d},"geometry":null}'


def read(step: ReadStep, data: bytes, *, chunk_size: int = 1 << 20, known: pa.Schema | None = None) -> list[Records]:
    message = messages(b"the message of the upload", start=7)
    return list(read_payload(reader_of(step, known), step, io.BytesIO(data), message, chunk_size=chunk_size))


def rows(found: list[Records]) -> list[dict[str, Any]]:
    return [row for records in found for row in records.rows.to_pylist()]


def places(found: list[Records]) -> list[tuple[int, int | None, str, bytes]]:
    return [(x.offset, x.index, x.code, x.data) for records in found for x in records.unreadable]


def test_records_have_the_time_and_place_of_the_message_and_count_through() -> None:
    data = b"\xef\xbb\xbf" + b"".join(b'{"a":%s}\n' % value for value in (b"0", b"x", b"2", b"3", b'"4"', b"5"))
    found = read(LINES, data, chunk_size=20)
    assert len(found) == 3
    assert [row["a"] for row in rows(found)] == [0, 2, 3, 5]
    assert places(found) == [(7, 1, "InvalidJson", b'{"a":x}'), (7, 4, "WrongType", b'{"a":"4"}')]
    [time] = messages(b"", start=7)["timestamp"].to_pylist()
    assert {time} == {moment for records in found for moment in records.timestamps.to_pylist()}


@pytest.mark.parametrize("step", [LINES, CSV, ReadStepJson(ddl_schema=COLUMNS), ReadStepGeoJson(ddl_schema=COLUMNS)])
@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf"])
def test_an_empty_payload_has_the_columns_that_are_known(step: ReadStep, data: bytes) -> None:
    [records] = read(step, data)
    assert (records.rows.column_names, records.count) == (["a", "b"], 0)
    assert read(step.model_copy(update={"ddl_schema": None}), data) == []


def test_a_header_alone_brings_its_columns() -> None:
    [records] = read(ReadStepCsv(header=True), b"x,y\n")
    assert (records.rows.column_names, records.count) == (["x", "y"], 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ('{"a":1}'.encode("utf-16"), "the payload is UTF-16: send UTF-8"),
        (b"<!doctype html>", "the payload is an HTML page, no data: look at the address that it comes from"),
    ],
)
@pytest.mark.parametrize("step", [LINES, CSV, ReadStepJson(), ReadStepNdGeoJson()])
def test_what_is_no_text_is_refused_as_a_whole(step: ReadStep, data: bytes, reason: str) -> None:
    with pytest.raises(InvalidPayloadError) as caught:
        read(step, data)
    assert str(caught.value) == reason


def test_what_was_inferred_first_holds_for_the_parts_behind() -> None:
    data = b'{"a":1.5}\n' + b'{"a":2,"late":"x"}\n' * 5 + b'{"a":"z"}\n{"late":1}\n'
    found = read(ReadStepNdJson(), data, chunk_size=30)
    assert {str(records.rows.schema.field("a").type) for records in found} == {"double"}
    assert found[-1].rows.column_names == ["a", "late"]
    assert [place[:3] for place in places(found)] == [(7, 6, "WrongType"), (7, 7, "WrongType")]
    assert len(rows(found)) == 6


def test_bad_rows_of_csv_are_dead_letters() -> None:
    data = b"b,a\r\nx,1\r\ny\r\nz,1,2\r\n\r\n" + b'"p"q,3\r\n\0,4\r\n"s\r\nt",5\r\n\xff,6\r\nu,7\r\n'
    step = ReadStepCsv(header=True, ddl_schema=COLUMNS)
    for size in (8, 30, 1 << 20):
        found = read(step, data, chunk_size=size)
        assert [(row["a"], row["b"]) for row in rows(found)] == [(1, "x"), (5, "s\r\nt"), (7, "u")]
        assert [place[1:3] for place in places(found)] == [
            (1, "InvalidCsv"),
            (2, "InvalidCsv"),
            (3, "InvalidCsv"),
            (4, "InvalidCsv"),
            (6, "InvalidUtf8"),
        ]
    assert [letter.reason for letter in found[0].unreadable] == [
        "expected 2 values, found 1",
        "expected 2 values, found 3",
        "a quoted value is not closed, or something follows its closing quote",
        "the row holds a NUL byte: send text in UTF-8",
        "not UTF-8: invalid start byte (at byte 1)",
    ]


def test_a_wrong_header_refuses_the_payload() -> None:
    with pytest.raises(InvalidPayloadError) as caught:
        read(ReadStepCsv(header=True, ddl_schema=COLUMNS), b"x,y\n1,2\n")
    assert str(caught.value) == ("the header of the CSV: the first row is no header: it names none of the columns")


@pytest.mark.parametrize(
    ("step", "data", "said"),
    [
        (ReadStepJson(), b'[{"a":1},{"a":', "expected the end of a value"),
        (ReadStepJson(), b'[{"a":1},', "expected a value, found the end at byte 9"),
        (ReadStepJson(sub_path="x.y"), b'{"x":{"z":[]}}', "the key 'y'"),
        (ReadStepGeoJson(), b'{"type":"Feature"}', "the key 'features'"),
        (ReadStepGeoJson(), b'{"features":[' + FEATURE % 1, "expected ',' or ']' after an element, found the end"),
    ],
)
def test_payloads_that_are_cut_off_say_where(step: ReadStep, data: bytes, said: str) -> None:
    with pytest.raises(MalformedBytesError) as caught:
        read(step, data)
    assert said in str(caught.value)


def test_json_and_geo_json_come_in_parts() -> None:
    array = b'{"x":{"y":[' + b",".join(b'{"a":%d}' % number for number in range(50)) + b"]}}"
    found = read(ReadStepJson(sub_path="x.y"), array, chunk_size=100)
    assert len(found) > 3
    assert [row["a"] for row in rows(found)] == list(range(50))
    features = [FEATURE % 1, b"1", FEATURE % 2]
    whole = b'{"type":"FeatureCollection","features":[' + b" ,\n".join(features) + b"]}"
    for step, data in ((ReadStepGeoJson(), whole), (ReadStepNdGeoJson(), b"\n".join(features))):
        found = read(step, data, chunk_size=100)
        assert [row["a"] for row in rows(found)] == [1, 2]
        assert places(found) == [(7, 1, "InvalidJson", b"1")]


def test_records_without_bound_are_refused() -> None:
    with pytest.raises(RecordTooLargeError):
        read(LINES, b'{"b":"' + b"x" * (MAX_RECORD_SIZE + 100), chunk_size=1 << 18)
    with pytest.raises(RecordTooLargeError, match="record 2 is larger than the 8388608 bytes"):
        read(LINES, b"{}\n" + b"x" * (MAX_RECORD_SIZE + 1), chunk_size=1 << 24)


def test_parquet_comes_in_parts_with_the_columns_of_all() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": range(200_000)}), file, row_group_size=50_000)
    found = read(ReadStepParquet(), file.getvalue(), chunk_size=1 << 19)
    assert len(found) > 2
    assert [row["a"] for row in rows(found)] == list(range(200_000))
    with pytest.raises(InvalidPayloadError, match="cannot be read as Parquet"):
        read(ReadStepParquet(), file.getvalue()[:-8])
    nothing = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), nothing)
    [records] = read(ReadStepParquet(), nothing.getvalue())
    assert (records.rows.column_names, records.count) == (["a"], 0)


def test_shapefiles_are_read_whole() -> None:
    [records] = read(ReadStepEsriShapefile(), packed(parts("x", "y")))
    assert records.rows["name"].to_pylist() == ["x", "y", None]
    with pytest.raises(InvalidPayloadError, match="this is no zip archive"):
        read(ReadStepEsriShapefile(), b"x")


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.text("ab,\"\n\r ;é'", max_size=5)), max_size=20),
    st.integers(1, 60),
    st.booleans(),
)
def test_csv_is_read_alike_however_it_is_cut(table: list[tuple[int, str]], chunk_size: int, quoted: bool) -> None:
    text = io.StringIO()
    text.write("a,b\r\n")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    writer.writerows(table)
    found = read(ReadStepCsv(header=True, ddl_schema=COLUMNS), text.getvalue().encode(), chunk_size=chunk_size)
    assert places(found) == []
    assert [(row["a"], row["b"] or "") for row in rows(found)] == table


@settings(max_examples=50)
@given(st.lists(st.sampled_from([b'{"a":1}', b"{", b"", b" ", b'{"b":"x"}', b"\xff"])), st.integers(1, 40))
def test_lines_are_read_alike_however_they_are_cut(lines: list[bytes], chunk_size: int) -> None:
    data = b"\n".join(lines)
    cut, whole = read(LINES, data, chunk_size=chunk_size), read(LINES, data)
    assert (rows(cut), places(cut)) == (rows(whole), places(whole))


@settings(max_examples=50)
@given(
    st.lists(st.fixed_dictionaries({"a": st.integers(0, 9)}, optional={"b": st.text(max_size=3)})), st.integers(1, 99)
)
def test_arrays_are_read_alike_however_they_are_cut(values: list[dict[str, Any]], chunk_size: int) -> None:
    found = read(ReadStepJson(ddl_schema=COLUMNS), json.dumps(values, indent=1).encode(), chunk_size=chunk_size)
    assert rows(found) == [{"a": value["a"], "b": value.get("b")} for value in values]
