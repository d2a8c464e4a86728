from __future__ import annotations

import struct

import pytest

from odf_common.errors import MalformedBytesError
from odf_common.wire.decode import decode_block
from odf_common.wire.limits import ITEM_SIZE, MAX_ITEMS, SHARED_ITEMS, SHARED_SIZE
from odf_common.wire.reader import BufferReader
from tests.unit.odf_common.wire import hostile
from tests.unit.odf_common.wire.raw import event_block, finished, table, vector


class TestAllowances:
    """What is read is paid for, so that sharing cannot make a small buffer large."""

    def test_items_are_as_many_as_the_size_allows(self) -> None:
        reader = BufferReader(bytes(10 * ITEM_SIZE))
        reader.spend(SHARED_ITEMS + 10)
        with pytest.raises(MalformedBytesError, match="more tables and elements"):
            reader.spend(1)

    def test_items_are_never_more_than_the_limit(self) -> None:
        with pytest.raises(MalformedBytesError, match="more tables and elements"):
            BufferReader(bytes(10 * ITEM_SIZE * MAX_ITEMS)).spend(MAX_ITEMS + 1)

    def test_a_text_is_paid_for_each_time(self) -> None:
        size = SHARED_SIZE // 4
        reader = BufferReader(struct.pack("<II", 4, size) + bytes(size))
        for _ in range(4):
            assert len(reader.bytes(0)) == size
        with pytest.raises(MalformedBytesError, match="more text"):
            reader.bytes(0)

    def test_a_large_buffer_may_be_read_once_as_a_whole(self) -> None:
        size = 2 * SHARED_SIZE
        assert len(BufferReader(struct.pack("<II", 4, size) + bytes(size)).bytes(0)) == size

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (hostile.doubling_maps(50), "more tables and elements"),
            (hostile.repeating_structs(10, times=1000), "more tables and elements"),
            (hostile.shared_columns(30_000), "more tables and elements"),
            (hostile.shared_columns(1000, more=dict.fromkeys(range(4, 504), b"\x01")), "more tables and elements"),
            (hostile.shared_keyword(30_000, size=0), "more tables and elements"),
            (hostile.shared_keyword(1000, size=100_000), "more text"),
            (hostile.shared_columns(1000, '{"a":"' + "x" * 100_000 + '"}'), "more text"),
            (hostile.options(60), "nested deeper"),
            (hostile.lists(10_000), "nested deeper"),
        ],
    )
    def test_a_bomb_is_refused_before_it_unfolds(self, data: bytes, message: str) -> None:
        with pytest.raises(MalformedBytesError, match=message):
            decode_block(data)

    def test_sharing_within_reason_is_read(self) -> None:
        """Other writers may well write equal texts and tables once."""
        assert decode_block(hostile.shared_columns(300)).unknown == ()
        assert decode_block(hostile.shared_keyword(4, size=100_000)).unknown == ()


class TestOutOfRange:
    @pytest.mark.parametrize("position", [-1, -4, 5, 8, 2**40])
    def test_nothing_is_read_outside_the_buffer(self, position: int) -> None:
        with pytest.raises(MalformedBytesError, match=f"at position {position}"):
            BufferReader(bytes(8)).u32(position)

    @pytest.mark.parametrize("count", [5, 2**31, 2**32 - 1])
    def test_a_vector_ends_within_the_buffer(self, count: int) -> None:
        with pytest.raises(MalformedBytesError, match="passes its end"):
            BufferReader(struct.pack("<II", 4, count) + bytes(4)).vector(0, 1)

    @pytest.mark.parametrize(
        ("vtable", "soffset", "message"),
        [
            ([14, 16], 1000, "no 4 bytes at position"),
            ([14, 16], -1000, "no 4 bytes at position"),
            ([3, 16], None, "has no valid layout"),
            ([65_535, 16], None, "has no valid layout"),
            ([200, 16], None, "no 196 bytes at position"),
            ([6, 65_535, 4], None, "has no valid layout"),
            ([6, 19, 4], None, "slot 0 passes the end of its table"),
            ([6, 20, 5], None, "slot 0 passes the end of its table"),
            ([6, 20, 65_535], None, "slot 0 passes the end of its table"),
        ],
    )
    def test_a_table_has_its_layout_and_its_slots_within_the_buffer(
        self, vtable: list[int], soffset: int | None, message: str
    ) -> None:
        with pytest.raises(MalformedBytesError, match=message):
            decode_block(hostile.content_table(vtable, soffset=soffset, body=40))


def test_absent_slots_are_none_and_numbers_0() -> None:
    root = BufferReader(finished(lambda builder: table(builder, {}))).root()
    assert (root.bytes(0), root.string(0), root.table(0), root.strings(0), root.tables(0)) == (None,) * 5
    assert (root.timestamp(0), root.optional_scalar(0, "ulong"), root.scalar(0, "ulong")) == (None, None, 0)


def test_tables_of_a_vector_are_looked_up_one_by_one() -> None:
    data = finished(lambda builder: table(builder, {0: vector(builder, [table(builder, {})] * 3)}))
    tables = BufferReader(data).root().tables(0)
    assert tables is not None
    assert len(list(tables)) == 3


def test_any_number_but_0_is_true() -> None:
    root = BufferReader(finished(lambda builder: table(builder, {0: b"\0", 1: b"\1", 2: b"\2"}))).root()
    assert [root.optional_scalar(index, "bool") for index in range(4)] == [False, True, True, None]


def test_a_block_is_read_at_whatever_alignment() -> None:
    assert decode_block(event_block("SetInfo", lambda builder: {0: int(builder.CreateString("a"))})).unknown == ()
