from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.ingest.row_codec import RowCodec


def _int(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))
_MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
_TEXTS = st.text(max_size=5)

_FLAT: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), _int(8)),
    (pa.int16(), _int(16)),
    (pa.int32(), _int(32)),
    (pa.int64(), _int(64)),
    (pa.uint8(), st.integers(0, 2**8 - 1)),
    (pa.uint16(), st.integers(0, 2**16 - 1)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.decimal128(20, 4), st.decimals(-(10**10), 10**10, places=4)),
    (pa.decimal256(50, 2), st.decimals(-(10**20), 10**20, places=2)),
    (pa.date32(), _DAYS),
    (pa.time32("ms"), st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    (pa.time64("us"), st.times()),
    (pa.timestamp("ms", "UTC"), _MOMENTS.map(lambda t: t.replace(microsecond=0))),
    (pa.timestamp("us"), _MOMENTS.map(lambda t: t.replace(tzinfo=None))),
    (pa.duration("ms"), st.timedeltas(timedelta(0), timedelta(9)).map(lambda d: timedelta(seconds=d.seconds))),
    (pa.string(), _TEXTS),
    (pa.large_string(), _TEXTS),
    (pa.binary(), st.binary(max_size=5)),
    (pa.binary(16), st.binary(min_size=16, max_size=16)),
    (pa.null(), st.none()),
]


def _nested(
    inner: st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]],
) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    def of(item: tuple[pa.DataType, st.SearchStrategy[Any]]) -> list[tuple[pa.DataType, st.SearchStrategy[Any]]]:
        data_type, values = item
        values = st.none() | values
        pairs = st.lists(st.tuples(_TEXTS, values), max_size=3, unique_by=lambda pair: pair[0])
        return [
            (pa.list_(data_type), st.lists(values, max_size=3)),
            (pa.large_list(data_type), st.lists(values, max_size=2)),
            (pa.list_(data_type, 2), st.lists(values, min_size=2, max_size=2)),
            (pa.map_(pa.string(), data_type), pairs),
            (
                pa.struct([pa.field("a", data_type), pa.field("b", pa.int32())]),
                st.fixed_dictionaries({"a": values, "b": st.none() | _int(32)}),
            ),
        ]

    return inner.map(of).flatmap(st.sampled_from)


column_types = st.recursive(st.sampled_from(_FLAT), _nested, max_leaves=3)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 5))
    arrays = []
    for data_type, values in draw(st.lists(column_types, max_size=4)):
        rows = draw(st.lists(st.none() | values, min_size=count, max_size=count))
        arrays.append(pa.array(rows, data_type))
    return pa.table(arrays, names=[str(number) for number in range(len(arrays))])


def same(one: pa.Table, other: pa.Table) -> bool:
    """Equal, and NaN where NaN was."""
    return bool(one.schema == other.schema and repr(one.to_pylist()) == repr(other.to_pylist()))


@settings(max_examples=60)
@given(tables())
def test_rows_come_back_as_they_were(table: pa.Table) -> None:
    codec = RowCodec(table.schema)
    values = codec.encode(table)
    if not table.num_columns:
        return
    values.validate(full=True)
    assert len(values) == table.num_rows
    decoded = codec.decode(values)
    decoded.validate(full=True)
    assert same(decoded, table)
    assert codec.encode(decoded).equals(values)


@settings(max_examples=60)
@given(tables(), st.data())
def test_any_choice_of_values_decodes_to_those_rows(table: pa.Table, data: st.DataObject) -> None:
    if not table.num_columns:
        return
    codec = RowCodec(table.schema)
    places = pa.array(data.draw(st.lists(st.integers(0, max(table.num_rows - 1, 0)), max_size=6)), pa.int64())
    if not table.num_rows:
        places = places[:0]
    values = codec.encode(table).take(places)
    start = data.draw(st.integers(0, len(places)))
    assert same(codec.decode(values[start:]), table.take(places[start:]))
    copied = pa.array([value.as_py() for value in values], pa.binary())
    assert same(codec.decode(copied), table.take(places))


@settings(max_examples=60)
@given(tables(), st.data())
def test_a_part_of_a_table_has_the_values_of_its_rows(table: pa.Table, data: st.DataObject) -> None:
    if not table.num_columns:
        return
    codec = RowCodec(table.schema)
    start = data.draw(st.integers(0, table.num_rows))
    whole = codec.encode(table).to_pylist()
    assert codec.encode(table.slice(start)).to_pylist() == whole[start:]
    assert codec.encode(pa.concat_tables([table.slice(0, start), table.slice(start)])).to_pylist() == whole


def test_the_form_of_values_never_changes() -> None:
    table = pa.table(
        {
            "n": pa.array([7, None], pa.int32()),
            "s": pa.array(["ab", None]),
            "l": pa.array([[1, 2], None], pa.list_(pa.int8())),
        }
    )
    fixed = b"\x01" + struct.pack("<i", 7) + b"\x01\x01" + struct.pack("<iii", 2, 8, 4)
    first = fixed + b"ab" + struct.pack("<ii", 2, 2) + b"\x01\x01\x01\x02"
    assert RowCodec(table.schema).encode(table).to_pylist() == [first, bytes(5 + 1 + 1 + 12)]


def test_what_lies_behind_nulls_makes_no_difference() -> None:
    hidden = pa.array([1, 2], pa.int64(), mask=pa.array([True, False]).to_numpy(zero_copy_only=False))
    plain = pa.array([None, 2], pa.int64())
    texts = pa.StringArray.from_buffers(
        2, pa.array([0, 3, 4], pa.int32()).buffers()[1], pa.py_buffer(b"abcd"), pa.py_buffer(b"\x02")
    )
    codec = RowCodec(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    assert codec.encode(pa.table({"a": hidden, "b": texts})).equals(
        codec.encode(pa.table({"a": plain, "b": pa.array([None, "d"])}))
    )


def test_columns_that_may_not_be_null_stay_so() -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    schema = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("s", inner)])
    table = pa.Table.from_pylist([{"a": "x", "s": {"x": 1}}, {"a": "y", "s": None}], schema)
    assert RowCodec(schema).decode(RowCodec(schema).encode(table)).equals(table)


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x01ab\x00\x00\x00\x00", b"\x01\xff\xff\xff\xff"])
def test_values_of_another_schema_are_noticed(value: bytes) -> None:
    with pytest.raises(ValueError, match="no row of this schema"):
        RowCodec(pa.schema([("a", pa.string())])).decode(pa.array([value, b"\x01\x00\x00\x00\x00"], pa.binary()))


def test_types_that_no_dataset_holds_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="dictionary"):
        RowCodec(pa.schema([("a", pa.dictionary(pa.int8(), pa.string()))]))


def test_decimals_keep_their_scale() -> None:
    table = pa.table({"d": pa.array([Decimal("1.50"), time(1).hour], pa.decimal128(5, 2))})
    assert RowCodec(table.schema).decode(RowCodec(table.schema).encode(table)).equals(table)
