from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.ingest.errors import BadInputSchemaError
from odf_common.ingest.merge import merge_keys


def key(value: Any, data_type: pa.DataType) -> bytes | None:
    found: bytes | None = merge_keys(pa.table({"k": pa.array([value], data_type)}), ["k"])[0].as_py()
    return found


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        (-5, pa.int32(), b"i2:-5"),
        (2**64 - 1, pa.uint64(), b"i20:18446744073709551615"),
        ("é", pa.string(), b"s2:\xc3\xa9"),
        (b"\x00", pa.binary(), b"x1:\x00"),
        (True, pa.bool_(), b"b1:1"),
        (0, pa.date32(), b"d1:0"),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), pa.timestamp("ms", "UTC"), b"ums4:1000"),
        (Decimal("1.50"), pa.decimal128(5, 2), b"n4:1.50"),
        (1.0, pa.float64(), b"f19:4607182418800017408"),
        (None, pa.int64(), None),
    ],
)
def test_the_form_of_keys_never_changes(value: Any, data_type: pa.DataType, expected: bytes | None) -> None:
    assert key(value, data_type) == expected


def test_equal_values_have_equal_keys() -> None:
    assert key(7, pa.int32()) == key(7, pa.int64()) == key(7, pa.uint8())
    assert key(0.0, pa.float64()) == key(-0.0, pa.float64()) == key(0.0, pa.float32())
    assert key("a", pa.large_string()) == key("a", pa.string())


def test_a_null_anywhere_in_the_key_means_no_key() -> None:
    table = pa.table({"a": [1, None, 3], "b": ["x", "y", None]})
    assert merge_keys(table, ["a", "b"]).to_pylist() == [b"i1:1s1:x", None, None]


def test_chunks_make_no_difference() -> None:
    table = pa.table({"a": [1, 2, 3]})
    assert merge_keys(pa.concat_tables([table, table]), ["a"]).to_pylist() == merge_keys(table, ["a"]).to_pylist() * 2
    assert merge_keys(table.slice(0, 0), ["a"]).to_pylist() == []


def test_columns_that_make_no_key_are_refused() -> None:
    with pytest.raises(BadInputSchemaError, match="none of that name"):
        merge_keys(pa.table({"a": [1]}), ["b"])
    with pytest.raises(BadInputSchemaError, match="makes no key"):
        merge_keys(pa.table({"a": [[1]]}), ["a"])


rows = st.lists(st.tuples(st.text("a:1s", max_size=3), st.text("a:1s", max_size=3), st.integers(-20, 20)), max_size=8)


@given(rows)
def test_different_rows_have_different_keys(values: list[tuple[str, str, int]]) -> None:
    columns = zip(*values, strict=True) if values else ((), (), ())
    table = pa.table(
        dict(zip("abc", map(list, columns), strict=True)),
        schema=pa.schema([("a", pa.string()), ("b", pa.string()), ("c", pa.int64())]),
    )
    assert len(set(merge_keys(table, ["a", "b", "c"]).to_pylist())) == len(set(values))
