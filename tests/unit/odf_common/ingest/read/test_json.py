from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.records import Records
from odf_common.metadata.sources import ReadStepJson
from tests.strategies import json_values
from tests.unit.odf_common.ingest.sources import letters, messages


def read(*values: bytes | None, sub_path: str | None = None) -> Records:
    step = ReadStepJson(ddl_schema=("a BIGINT", "b DECIMAL(30, 20)"), sub_path=sub_path)
    return reader_of(step, None).read(messages(*values))


def test_elements_are_records_and_keep_their_digits() -> None:
    records = read(b' [ {"a":1,\n"b":0.12345678901234567890}, {"a":"x"} ,{"a":3}]\n', b"[]")
    assert records.rows["a"].to_pylist() == [1, 3]
    assert str(records.rows["b"][0]) == "0.12345678901234567890"
    assert letters(records.unreadable) == [(0, 1, "WrongType")]
    assert records.unreadable[0].data == b'{"a":"x"}'


def test_elements_lie_at_a_path() -> None:
    records = read(b'{"x":[1],"r":{"q":{"a":[]},"s":[{"a":1}],"t":null}}', sub_path="r.s")
    assert records.rows["a"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("bad", "sub_path", "code"),
    [
        (b"[1", None, "InvalidJson"),
        (b"[{}] x", None, "InvalidJson"),
        (b"{}", None, "InvalidJson"),
        (b'"x"', None, "InvalidJson"),
        (b'{"r":{}}', "r.s", "InvalidJson"),
        (b'{"r":{"s":{}}}', "r.s", "InvalidJson"),
        (b'{"r":{"s":[]},"r":{"s":[]}}', "r.s", "InvalidJson"),
        (b'[{"a":"\xff"}]', None, "InvalidUtf8"),
        (b"[" * 100_000 + b"]" * 100_000, None, "TooDeep"),
        (None, None, "Tombstone"),
    ],
)
def test_a_message_without_the_array_is_one_dead_letter(bad: bytes | None, sub_path: str | None, code: str) -> None:
    good = b'{"r":{"s":[{"a":1}]}}' if sub_path else b'[{"a":1}]'
    records = read(good, bad, good, sub_path=sub_path)
    assert records.rows["a"].to_pylist() == [1, 1]
    assert letters(records.unreadable) == [(1, None, code)]


def test_elements_that_are_no_objects_are_dead_letters() -> None:
    records = read(b'[1,[{}],{"a":NaN},{"a":5},"}{"]')
    assert records.rows["a"].to_pylist() == [5]
    assert letters(records.unreadable) == [(0, index, "InvalidJson") for index in (0, 1, 2, 4)]


@given(st.lists(json_values(), max_size=5))
def test_every_element_counts(elements: list[object]) -> None:
    try:
        message = orjson.dumps(elements)
    except TypeError:  # integers beyond 64 bits
        return
    assert read(message).count == len(elements)
