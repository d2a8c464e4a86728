from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.inference import MAX_COLUMNS
from odf_common.ingest.read.records import Records
from odf_common.metadata.sources import ReadStepNdJson
from tests.unit.odf_common.ingest.sources import COLUMNS, letters, messages


def read(*values: bytes | None, columns: tuple[str, ...] | None = COLUMNS, known: pa.Schema | None = None) -> Records:
    return reader_of(ReadStepNdJson(ddl_schema=columns), known).read(messages(*values))


def column(records: Records, name: str) -> list[Any]:
    return list(records.rows[name].to_pylist())


GOOD = b'{"city":"Paris","population":7}'


@pytest.mark.parametrize(
    ("bad", "code", "reason"),
    [
        (None, "Tombstone", "no value"),
        (b"", "EmptyMessage", "empty"),
        (b" \r\n\t", "EmptyMessage", "blanks"),
        (b'{"city":', "InvalidJson", "unexpected end of data"),
        (b"{}{}", "InvalidJson", "after document"),
        (b'{"city":"x"} {"city":"y"}', "InvalidJson", "after document"),
        (b"[1]", "InvalidJson", "expected a JSON object, found an array"),
        (b"1", "InvalidJson", "found a number"),
        (b"null", "InvalidJson", "found null"),
        (b'{"population":NaN}', "InvalidJson", "not JSON"),
        (b'{"ignored": [ -Infinity]}', "InvalidJson", "not JSON"),
        (b'{"city":"\xff"}', "InvalidUtf8", "byte 10"),
        (b'{"ignored":"\xff"}', "InvalidUtf8", "not UTF-8"),
        (b'{"ignored":"\\ud800"}', "InvalidJson", "surrogate"),
        (b'{"population":9223372036854775808}', "WrongType", "expected BIGINT, found number 9223372036854775808"),
        (b'{"population":1.0}', "WrongType", "expected BIGINT"),
        (b'{"population":"1"}', "WrongType", "column 'population': expected BIGINT, found string \"1\""),
        (b'{"population":true}', "WrongType", "found boolean true"),
        (b'{"city":1}', "WrongType", "expected STRING"),
        (b'{"city":{"a":1}}', "WrongType", "found object"),
        (b'{"event_time":"0000-01-01T00:00:00Z"}', "WrongType", "expected TIMESTAMP(3)"),
        (b'{"event_time":"2020-02-30T00:00:00Z"}', "WrongType", "expected TIMESTAMP(3)"),
        (b'{"event_time":"yesterday"}', "WrongType", "expected TIMESTAMP(3)"),
        (b'{"event_time":1577836800}', "WrongType", "expected TIMESTAMP(3)"),
        (b'{"event_time":"9999-01-01T00:00:00Z"}', "WrongType", "no time of an event"),
        (b'{"event_time":"9999-12-31T23:59:59-05:00"}', "WrongType", "column 'event_time'"),
        (b'{"city":"a","city":"b"}', "DuplicateKey", "'city' is given twice"),
        (b'{"city":"a","\\u0063ity":"b"}', "DuplicateKey", "'city' is given twice"),
        (b'{"ignored":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "TooDeep", "64 deep"),
        (b'{"ignored":' + b'{"]":' * 10_000 + b"1" + b"}" * 10_000 + b"}", "TooDeep", "64 deep"),
        (b'{"ignored":' + b"[" * 4_000_000, "TooDeep", "64 deep"),
        (b"[" * 1_000_000, "TooDeep", "64 deep"),
        (b'{"city":"' + b"x" * (10 << 20) + b'"}', "MessageTooLarge", str(MAX_MESSAGE_SIZE)),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes | None) else None,
)
def test_a_bad_message_is_a_dead_letter_and_its_neighbours_are_rows(bad: bytes | None, code: str, reason: str) -> None:
    records = read(GOOD, bad, GOOD)
    assert column(records, "city") == ["Paris", "Paris"]
    [letter] = records.unreadable
    assert (letter.offset, letter.index, letter.code) == (1, None, code)
    assert reason in letter.reason
    assert letter.data == (bad or b"")
    assert records.count == 3


def test_all_columns_come_in_their_types() -> None:
    columns = (
        "t TIMESTAMP", "u TIMESTAMP(6)", "d DATE", "c TIME", "n DECIMAL(5, 2)", "i UUID", "f FLOAT", "b BOOLEAN",
        "l ARRAY<STRUCT<at: TIMESTAMP, x: DOUBLE>>",
    )  # fmt: skip
    value = {
        "t": "2020-01-01T02:00:00.1239+02:00",
        "u": "2020-01-01 00:00:00.123456",
        "d": "9999-12-31",
        "c": "23:59:59.5",
        "n": 1.5,
        "i": "123e4567-e89b-12d3-a456-426614174000",
        "f": 0.5,
        "b": True,
        "l": [{"at": "2020-01-01T00:00:00Z", "x": 1}, None],
    }
    records = read(json.dumps(value).encode(), b"{}", columns=columns)
    moment = datetime(2020, 1, 1, 0, 0, 0, 123000, UTC)
    assert records.rows.to_pylist() == [
        {
            "t": moment,
            "u": moment,
            "d": date(9999, 12, 31),
            "c": time(23, 59, 59, 500000),
            "n": Decimal("1.50"),
            "i": bytes.fromhex("123e4567e89b12d3a456426614174000"),
            "f": 0.5,
            "b": True,
            "l": [{"at": datetime(2020, 1, 1, tzinfo=UTC), "x": 1.0}, None],
        },
        dict.fromkeys(value),
    ]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-01-01T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-01-01t00:00:00z", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-01-01 00:00:00", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-01-01T00:00:00.123456789Z", datetime(2020, 1, 1, 0, 0, 0, 123000, UTC)),
        ("2020-01-01T00:00:00.1-01:30", datetime(2020, 1, 1, 1, 30, 0, 100000, UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("2020-01-01", None),
        ("2020-01-01T00:00Z", None),
        ("2020-01-01T24:00:00Z", None),
        ("2020-01-01T00:00:60Z", None),
        ("2020-01-01T00:00:00+0100", None),
        ("2020-01-01T00:00:00.Z", None),
        (" 2020-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("9999-12-31T23:59:59-01:00", None),
        ("12020-01-01T00:00:00Z", None),
        ("", None),
    ],
)
def test_timestamps_are_rfc_3339(text: str, moment: datetime | None) -> None:
    records = read(json.dumps({"t": text}).encode(), columns=("t TIMESTAMP",))
    assert column(records, "t") == ([] if moment is None else [moment])


def test_a_message_holds_many_lines_and_dead_letters_name_theirs() -> None:
    records = read(b'\xef\xbb\xbf{"city":"a"}\r\n\n{"city":1}\n{"city":"c"}\n', b'{"city":"d"}\n')
    assert column(records, "city") == ["a", "c", "d"]
    [letter] = records.unreadable
    assert (letter.offset, letter.index, letter.data) == (0, 1, b'{"city":1}')
    assert records.timestamps.to_pylist()[1:] == messages(None, None)["timestamp"].to_pylist()


@pytest.mark.parametrize(
    ("one", "other"), [(b'{"city":', b'"x"}'), (b'{"a":[{}', b"{}]}"), (b'{"city":"', b'"}'), (b'{"a":{}', b',"b":{}}')]
)
def test_neighbours_are_never_read_as_one(one: bytes, other: bytes) -> None:
    records = read(one, other)
    assert records.rows.num_rows == 0
    assert letters(records.unreadable) == [(0, None, "InvalidJson"), (1, None, "InvalidJson")]


def test_columns_are_inferred_in_the_order_of_names_then_of_appearance() -> None:
    records = read(
        b'{"b":1,"a":"2020-01-01T00:00:00Z","n":null,"e":[]}',
        b'{"z":{"y":1,"x":null},"b":1.5,"c":[1,null]}',
        columns=None,
    )
    inferred = [
        ("a", pa.string()),
        ("b", pa.float64()),
        ("z", pa.struct([("y", pa.int64())])),
        ("c", pa.list_(pa.int64())),
    ]
    assert [(field.name, field.type) for field in records.rows.schema] == inferred
    assert records.unreadable == []


def test_what_contradicts_the_inferred_type_is_a_dead_letter_and_brings_no_column() -> None:
    known = pa.schema([("a", pa.int64())])
    records = read(b'{"a":"x","b":1}', b'{"a":1}', columns=None, known=known)
    assert records.rows.column_names == ["a"]
    assert letters(records.unreadable) == [(0, None, "WrongType")]


def test_a_column_that_comes_after_the_samples_is_not_lost() -> None:
    records = read(*[b'{"a":1}'] * 2000, b'{"late":true}', columns=None)
    assert column(records, "late")[-1] is True


def test_undeclared_event_times_are_texts_or_unix_seconds_and_reserved_names_make_room() -> None:
    records = read(
        b'{"event_time":1577836800,"offset":1}', b'{"event_time":"2020-01-01T00:00:00Z"}', b'{"op":2}', columns=None
    )
    assert column(records, "event_time") == [datetime(2020, 1, 1, tzinfo=UTC)] * 2 + [None]
    assert column(records, "_offset") == [1, None, None]
    assert column(records, "_op") == [None, None, 2]


def test_records_bring_only_what_can_be_stored() -> None:
    records = read(b'{"a":1}', b'{"a":2,"l":[{"x":1}]}', columns=None)
    assert column(records, "a") == [1]
    [letter] = records.unreadable
    assert "column 'l' would hold list<item: struct<x: int64>>" in letter.reason


def test_records_cannot_bring_columns_without_end() -> None:
    wide = json.dumps({f"c{number}": 1 for number in range(MAX_COLUMNS + 1)}).encode()
    records = read(b'{"a":1}', wide, columns=None)
    assert records.rows.column_names == ["a"]
    assert letters(records.unreadable) == [(1, None, "TooManyColumns")]


def values_of_columns() -> st.SearchStrategy[bytes | None]:
    times = st.sampled_from(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.12345+01:00", "0000-01-01T00:00:00Z", "x", 5])
    numbers = st.integers(-(2**63), 2**64) | st.floats() | st.booleans()
    texts = st.text(max_size=3)
    odd = st.none() | st.lists(texts, max_size=2) | st.dictionaries(texts, texts, max_size=2)
    objects = st.fixed_dictionaries(
        {}, optional={"event_time": times, "city": texts | numbers | odd, "population": numbers | texts | odd, "x": odd}
    )
    lines = objects.map(lambda value: json.dumps(value).encode())
    fragments = st.sampled_from([b"{", b"}", b'{"city":', b'"x"}', b",", b"[", b"]", b"\\", b'"', b" ", b"\n", b"\xff"])
    broken = st.lists(fragments | lines, max_size=4).map(b"".join)
    many = st.lists(lines | broken, max_size=3).map(b"\n".join)
    return st.none() | lines | lines | many | broken | st.binary(max_size=6)


@given(st.lists(values_of_columns(), max_size=8))
def test_a_batch_is_read_as_each_message_alone(values: list[bytes | None]) -> None:
    together = read(*values)
    alone = [
        reader_of(ReadStepNdJson(ddl_schema=COLUMNS), None).read(messages(value, start=number))
        for number, value in enumerate(values)
    ]
    assert together.rows.to_pylist() == [row for records in alone for row in records.rows.to_pylist()]
    assert letters(together.unreadable) == [place for records in alone for place in letters(records.unreadable)]
    assert together.count == sum(records.count for records in alone)


@pytest.mark.parametrize("columns", [COLUMNS, None])
def test_bad_records_are_found_wherever_they_stand_in_a_large_batch(columns: tuple[str, ...] | None) -> None:
    known = None if columns else pa.schema([("city", pa.string()), ("population", pa.int64())])
    bad = {7: b"x", 300: b'{"population":"x"}', 30_000: b'{"population":', 41_234: b'{"population":{}}', 59_999: b"[]"}
    values = [
        bad.get(place, b'{"city":"Paris, a city of many people","population":%d}' % place) for place in range(60_000)
    ]
    records = read(*values, columns=columns, known=known)
    assert [letter.offset for letter in records.unreadable] == list(bad)
    assert column(records, "population") == [place for place in range(60_000) if place not in bad]
    assert records.timestamps.to_pylist() == messages(*values)["timestamp"].to_pylist()[:7] + [
        time for place, time in enumerate(messages(*values)["timestamp"].to_pylist()) if place > 7 and place not in bad
    ]


def test_columns_that_come_late_in_a_large_batch_are_those_of_all_its_lines() -> None:
    late = {25_000: b'{"a":1,"late":2}', 50_000: b'{"a":1,"late":2.5}', 59_999: b'{"a":"x"}'}
    padding = b'{"a":1,"padding":"' + b"x" * 50 + b'"}'
    records = read(*[late.get(place, padding) for place in range(60_000)], columns=None)
    assert records.rows.column_names == ["a", "padding", "late"]
    assert column(records, "late")[50_000] == 2.5
    assert letters(records.unreadable) == [(59_999, None, "WrongType")]


def test_many_repeated_keys_are_dead_letters_where_a_column_has_them() -> None:
    columns = ("a BIGINT", "s STRUCT<b: BIGINT>")
    values = [b'{"a":1,"a":null}', b'{"x":1,"x":2,"a":5}', b'{"s":{"b":1,"b":2}}', b'{"s":{"x":1,"x":2}}'] * 1000
    records = read(*values, columns=columns)
    assert column(records, "a") == [5, None] * 1000
    assert [letter.offset % 4 for letter in records.unreadable] == [0, 2] * 1000
    assert {letter.reason for letter in records.unreadable} == {
        "column 'a' is given twice",
        "column 's.b' is given twice",
    }
    for alone, reason in ((values[0], "'a' is given twice"), (values[2], "'s.b' is given twice")):
        [letter] = read(alone, columns=columns).unreadable
        assert reason in letter.reason


@pytest.mark.parametrize("number", [b"999.99", b"1000", b"99999.5", b"1.234", b"-1000.00"])
def test_decimals_that_do_not_fit_are_dead_letters(number: bytes) -> None:
    records = read(b'{"n":%b}' % number, b'{"n":1}', columns=("n DECIMAL(5, 2)",))
    assert records.count == 2
    assert len(records.unreadable) == (number != b"999.99")
