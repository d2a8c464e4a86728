from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from odf_common.catalog.records import SourceSettings
from streaming_jobs.ingest.batch_size import MessageSize, max_messages, needs_another_size, pieces
from tests.unit.streaming_jobs.ingest.builders import messages

Values = st.lists(st.none() | st.binary(max_size=700) | st.just(b"{}\n" * 40), max_size=40)


def limits(rows: int = 100_000, size: int = 64 << 20) -> SourceSettings:
    return SourceSettings(batch_rows=rows, batch_bytes=size)


def values(*found: bytes | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(found, pa.binary())])


def lines(value: bytes | None) -> int:
    return (value or b"").count(b"\n") + 1


@given(Values, st.integers(1, 60), st.integers(1 << 10, 4 << 10))
def test_pieces_keep_the_limits_and_lose_nothing(found: list[bytes | None], rows: int, size: int) -> None:
    cut = list(pieces(messages(*found), limits(rows, size)))
    assert [each for piece in cut for each in piece["value"].to_pylist()] == found
    assert [each for piece in cut for each in piece["offset"].to_pylist()] == list(range(len(found)))
    for piece in cut:
        content = piece["value"].to_pylist()
        assert content
        if len(content) > 1:  # a single message is never cut
            assert sum(map(lines, content)) <= rows
            assert sum(len(each or b"") for each in content) <= size


@given(Values, st.integers(1, 60), st.integers(1 << 10, 4 << 10))
def test_pieces_are_as_large_as_they_may_be(found: list[bytes | None], rows: int, size: int) -> None:
    cut = [piece["value"].to_pylist() for piece in pieces(messages(*found), limits(rows, size))]
    for piece, following in pairwise(cut):
        grown = [*piece, following[0]]
        assert sum(map(lines, grown)) > rows or sum(len(each or b"") for each in grown) > size


def test_the_number_of_messages_follows_from_their_size() -> None:
    assert max_messages(None, limits(rows=500)) == 500
    assert max_messages(MessageSize.of(values(b"x" * 100)), limits(size=10_000)) == 100
    assert max_messages(MessageSize.of(values(b"{}\n{}\n{}\n{}")), limits(rows=100)) == 25
    assert max_messages(MessageSize.of(values(b"x" * 10_000)), limits(size=1 << 10)) == 1
    assert max_messages(MessageSize.of(values(None, b"")), limits(rows=7)) == 7
    assert MessageSize.of(values()) is None


def test_a_query_starts_anew_only_when_another_number_helps() -> None:
    small, large = b"x", b"x" * 1_000
    assert not needs_another_size(values(), 10, limits())
    assert not needs_another_size(values(*[small] * 10), 10, limits(rows=20))
    assert needs_another_size(values(*[small] * 10), 10, limits(rows=21))
    assert not needs_another_size(values(*[small] * 9), 10, limits(rows=1_000))  # not all that it may take
    assert needs_another_size(values(*[large] * 10), 10, limits(size=2_000))
    # One message is more than a batch should hold: fewer than one cannot be taken.
    assert not needs_another_size(values(large * 10), 1, limits(size=1 << 10))


@given(Values.filter(len), st.integers(1, 10_000), st.integers(1, 60), st.integers(1 << 10, 4 << 10))
def test_starting_anew_ends(found: list[bytes | None], current: int, rows: int, size: int) -> None:
    """With the number that it asks for, the same messages do not ask for another one."""
    settings = limits(rows, size)
    if needs_another_size(values(*found), current, settings):
        better = max_messages(MessageSize.of(values(*found)), settings)
        assert better != current
        assert not needs_another_size(values(*found), better, settings)
