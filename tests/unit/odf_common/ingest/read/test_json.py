from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.json import array_elements
from odf_common.ingest.read.json_arrays import Elements
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


def test_keys_given_twice_are_seen_in_elements() -> None:
    records = read(b'[{"a":1,"a":2},{"a":3,"x":1,"x":2}]')
    assert records.rows["a"].to_pylist() == [3]
    assert letters(records.unreadable) == [(0, 0, "DuplicateKey")]


@pytest.mark.parametrize("message", [b'{"a":[{"a":1}],"b":[{"a":2}]}', b'{"a":[{"a":7}],"a":[{"a":1}]}'])
def test_arrays_beside_the_one_at_the_path_are_not_taken_for_it(message: bytes) -> None:
    records = read(message, sub_path="a")
    assert records.rows["a"].to_pylist() == ([1] if b'"b"' in message else [])


def texts() -> st.SearchStrategy[bytes]:
    """JSON of arrays, with blanks and escapes anywhere."""
    strings = st.text(st.sampled_from('a"\\,[]{}:\n\u00e9'), max_size=4).map(lambda text: orjson.dumps(text).decode())
    blanks = st.sampled_from(["", "", " ", "\n", "\r\n\t"])

    def nested(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        padded = st.builds("{}{}{}".format, blanks, values, blanks)
        members = st.builds("{}:{}".format, strings, padded)
        return st.lists(padded, max_size=3).map(lambda found: f"[{','.join(found)}]") | st.lists(
            members, max_size=3
        ).map(lambda found: f"{{{','.join(found)}}}")

    values = st.recursive(strings | st.sampled_from(["1", "null", "0.10", "1e400"]), nested, max_leaves=8)
    arrays = st.lists(st.builds("{}{}{}".format, blanks, values, blanks), max_size=4)
    return arrays.map(lambda found: f"[{','.join(found)}]".encode())


@given(st.lists(texts(), max_size=4), st.sampled_from([(), ("a",), ("a", "b")]))
def test_elements_are_the_same_whichever_way_they_are_found(arrays: list[bytes], path: tuple[str, ...]) -> None:
    before, after = b"".join(b'{"%b":' % key.encode() for key in path), b"}" * len(path)
    found, expected, parents = Elements(path), [], []
    for row, array in enumerate(arrays):
        message = before + array + after
        if found.take_plain(row, message):
            elements = array_elements(message, path)
            expected += elements
            parents += [row] * len(elements)
    lines = found.lines(messages(*arrays))
    assert lines.texts.to_pylist() == expected
    assert lines.message.tolist() == parents
