from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.ingest.read import whole
from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.records import Records
from odf_common.metadata.sources import ReadStepParquet
from tests.unit.odf_common.ingest.sources import letters, messages


def parquet(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def read(*values: bytes | None, columns: tuple[str, ...] | None = None, known: pa.Schema | None = None) -> Records:
    return reader_of(ReadStepParquet(ddl_schema=columns), known).read(messages(*values))


def reasons(records: Records) -> list[tuple[str, str]]:
    return [(letter.code, letter.reason) for letter in records.unreadable]


def test_columns_are_taken_as_they_are() -> None:
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int16()),
            "t": pa.array([datetime(2020, 1, 1), None], pa.timestamp("us")),
            "d": pa.array([date(2020, 1, 1), None]),
            "s": pa.array(["x", "y"]).dictionary_encode(),
            "n": pa.array([Decimal("1.5"), None], pa.decimal128(5, 2)),
            "l": pa.array([[1], None], pa.list_(pa.int64())),
            "m": pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())])),
            "nothing": pa.nulls(2),
        }
    )
    records = read(parquet(table))
    assert records.unreadable == []
    assert records.rows.to_pylist() == [
        {
            "i": 1,
            "t": datetime(2020, 1, 1, tzinfo=UTC),
            "d": date(2020, 1, 1),
            "s": "x",
            "n": Decimal("1.50"),
            "l": [1],
            "m": {"a": 1},
        },
        {"i": None, "t": None, "d": None, "s": "y", "n": None, "l": None, "m": None},
    ]


def test_declared_columns_are_taken_by_name_and_cast_where_that_loses_nothing() -> None:
    table = pa.table(
        {
            "c": pa.array([3, 4], pa.int32()),
            "b": pa.array(["x", "y"], pa.large_string()),
            "a": pa.array([1.0, 2.0]),
            "t": pa.array([1_577_836_800_000_001_999, None], pa.timestamp("ns", "Europe/Berlin")),
            "more": [1, 2],
        }
    )
    records = read(parquet(table), columns=("a BIGINT", "b STRING", "c DECIMAL(12, 2)", "t TIMESTAMP", "none DOUBLE"))
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    assert records.rows.to_pylist() == [
        {"a": 1, "b": "x", "c": Decimal("3.00"), "t": moment, "none": None},
        {"a": 2, "b": "y", "c": Decimal("4.00"), "t": None, "none": None},
    ]


@pytest.mark.parametrize(
    ("values", "declared", "reason"),
    [
        (pa.array([1.0, 1.5]), "BIGINT", "record 2: column 'a': expected BIGINT, found 1.5"),
        (pa.array([0, 2**31]), "INT", "record 2: column 'a': expected INT, found 2147483648"),
        (pa.array([0, 2**53 + 1]), "DOUBLE", "record 2: column 'a': expected DOUBLE, found 9007199254740993"),
        (pa.array([0.5, 0.1]), "FLOAT", "record 2: column 'a': expected FLOAT, found 0.1"),
        (pa.array(["1"]), "BIGINT", "column 'a': expected BIGINT, the Parquet file has STRING"),
        (pa.array([1]), "STRING", "column 'a': expected STRING, the Parquet file has BIGINT"),
        (pa.array([1, None]), "BIGINT NOT NULL", "record 2: column 'a': a value is required"),
        (pa.array([3_000_000], pa.date32()), "DATE", "record 1: column 'a': expected DATE, found 10183-09-21"),
    ],
)
def test_what_would_lose_something_is_refused_as_a_whole(values: pa.Array, declared: str, reason: str) -> None:
    good = parquet(pa.table({"a": values[:0]}))
    records = read(good, parquet(pa.table({"a": values})), columns=(f"a {declared}",))
    assert reasons(records) == [("WrongType", reason)]
    assert letters(records.unreadable) == [(1, None, "WrongType")]


def test_undeclared_event_times_are_times_texts_or_unix_seconds_and_reserved_names_make_room() -> None:
    first = pa.table({"event_time": [1_577_836_800], "offset": [1]})
    second = pa.table({"event_time": ["2020-01-01T00:00:00Z"], "op": [2]})
    records = read(parquet(first), parquet(second))
    assert records.rows["event_time"].to_pylist() == [datetime(2020, 1, 1, tzinfo=UTC)] * 2
    assert records.rows["_offset"].to_pylist() == [1, None]
    assert records.rows["_op"].to_pylist() == [None, 2]
    days = read(parquet(pa.table({"event_time": pa.array([date(2020, 1, 1)])})))
    assert days.rows.schema.field("event_time").type == pa.date32()


def test_known_columns_keep_their_types() -> None:
    known = pa.schema([("a", pa.int64()), ("b", pa.string())])
    fits, other = pa.table({"a": pa.array([1], pa.int8()), "c": [True]}), pa.table({"a": ["x"]})
    records = read(parquet(fits), parquet(other), known=known)
    assert records.rows.to_pylist() == [{"a": 1, "b": None, "c": True}]
    assert reasons(records) == [("WrongType", "column 'a': expected BIGINT, the Parquet file has STRING")]


def test_each_message_has_the_time_of_its_own() -> None:
    records = read(parquet(pa.table({"a": [1, 2]})), None, parquet(pa.table({"a": [3]})))
    first, _, third = messages(None, None, None)["timestamp"].to_pylist()
    assert records.timestamps.to_pylist() == [first, first, third]
    assert letters(records.unreadable) == [(1, None, "Tombstone")]


def test_a_file_without_declared_columns_is_refused() -> None:
    records = read(parquet(pa.table({"x": [1]})), columns=("a BIGINT", "b STRING"))
    assert reasons(records) == [("InvalidPayload", "the Parquet file has none of the columns a, b")]


def test_an_event_time_in_the_year_9999_is_refused() -> None:
    table = pa.table({"event_time": pa.array([253_402_300_799_000], pa.timestamp("ms", "UTC"))})
    [letter] = read(parquet(table)).unreadable
    assert "year 9999" in letter.reason


def test_a_small_file_that_becomes_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MAX_UNPACKED_MESSAGE", 1 << 20)
    value = parquet(pa.table({"a": pa.array(["x" * 1000] * 100_000)}))
    assert len(value) < 1 << 18
    assert reasons(read(value)) == [
        ("InvalidPayload", "the Parquet file unpacks to more than 1048576 bytes: send it in smaller files")
    ]


def test_texts_that_are_no_utf_8_are_refused() -> None:
    texts = pa.array([b"ok", b"\xff"]).view(pa.string())
    [letter] = read(parquet(pa.table({"a": texts}), store_schema=False)).unreadable
    assert letter.code == "InvalidPayload"


@pytest.mark.parametrize("value", [b"PAR1", b"x" * 100, b"PAR1" + b"\0" * 100 + b"PAR1", b'{"a":1}'])
def test_what_is_no_parquet_is_a_dead_letter(value: bytes) -> None:
    [letter] = read(parquet(pa.table({"a": [1]})), value).unreadable
    assert (letter.offset, letter.index, letter.code, letter.data) == (1, None, "InvalidPayload", value)


@given(st.data())
def test_damaged_files_raise_nothing(data: st.DataObject) -> None:
    value = bytearray(parquet(pa.table({"a": [1, 2], "b": ["x", None], "c": [[1], []]})))
    for _ in range(data.draw(st.integers(1, 3))):
        # The footer describes column chunks, at which nobody may look; data pages are fair game.
        value[data.draw(st.integers(0, 300))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del value[data.draw(st.integers(0, len(value))) :]
    records = read(bytes(value))
    assert records.rows.num_rows in (0, 2)
    assert len(records.unreadable) == (records.rows.num_rows == 0)
