from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.errors import MalformedBytesError
from odf_common.ingest.cutting import MAX_RECORD_SIZE, RecordTooLargeError, UncuttableFormatError, cut, cut_counted
from odf_common.ingest.pieces import MAX_AROUND_SIZE, MAX_MESSAGE_SIZE
from odf_common.kafka.topics import MAX_MESSAGE_SIZE as TOPIC_MESSAGE_SIZE
from odf_common.metadata.sources import (
    ReadStep,
    ReadStepCsv,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)

LINES = ReadStepNdJson()
ARRAY = ReadStepJson()
CSV = ReadStepCsv(header=True)
BARE_CSV = ReadStepCsv()


def cut_all(step: ReadStep, data: bytes, *, max_size: int = 1 << 18, chunk: int = 7) -> list[bytes]:
    return list(cut(step, chunks(data, chunk), max_size=max_size))


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


class TestLines:
    def test_small_payloads_stay_one_message(self) -> None:
        assert cut_all(LINES, b'{"a":1}\n{"a":2}\n') == [b'{"a":1}\n{"a":2}']

    def test_messages_end_with_records(self) -> None:
        assert cut_all(LINES, b"11\n22\n33\n4", max_size=6) == [b"11\n22", b"33\n4"]

    def test_a_record_larger_than_a_message_gets_its_own(self) -> None:
        assert cut_all(LINES, b"1\n" + b"2" * 50 + b"\n3", max_size=6) == [b"1", b"2" * 50, b"3"]

    def test_a_record_without_bound_is_refused_by_number(self) -> None:
        with pytest.raises(RecordTooLargeError, match="line 3 is larger than the 8388608 bytes"):
            cut_all(LINES, b"1\n2\n" + b"x" * (MAX_RECORD_SIZE + 1), chunk=1 << 16)

    def test_an_endless_record_is_not_collected(self) -> None:
        def endless() -> Iterator[bytes]:
            while True:
                yield b"x" * 65536

        with pytest.raises(RecordTooLargeError, match="line 1"):
            list(cut(LINES, endless()))

    @pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf"])
    def test_nothing_gives_no_message(self, data: bytes) -> None:
        assert cut_all(LINES, data) == []

    def test_a_byte_order_mark_is_left_out(self) -> None:
        assert cut_all(LINES, b"\xef\xbb\xbf{}\n") == [b"{}"]

    def test_blank_lines_are_no_records(self) -> None:
        assert [piece.records for piece in cut_counted(LINES, [b"1\n\n2\r\n \r\n3\n"])] == [3]

    @given(st.lists(st.binary(min_size=1).map(lambda x: x.hex().encode())), st.integers(1, 40), st.integers(1, 30))
    def test_nothing_is_lost_or_reordered(self, records: list[bytes], max_size: int, chunk: int) -> None:
        pieces = list(cut_counted(LINES, chunks(b"\n".join(records), chunk), max_size=max_size))
        assert [line for piece in pieces for line in piece.data.split(b"\n")] == records
        assert sum(piece.records for piece in pieces) == len(records)
        assert all(len(piece.data) <= max_size or piece.records == 1 for piece in pieces)


class TestCsv:
    def test_every_message_has_the_header(self) -> None:
        assert cut_all(CSV, b"a,b\n1,2\n3,4\n", max_size=9) == [b"a,b\n1,2", b"a,b\n3,4"]

    def test_a_header_alone_is_no_record(self) -> None:
        assert cut_all(CSV, b"a,b\n") == []

    def test_line_ends_in_quotes_do_not_end_a_record(self) -> None:
        data = b'1,"x\ny"\n2,"a ""b""\n"\n3,z'
        assert cut_all(BARE_CSV, data, max_size=8) == [b'1,"x\ny"', b'2,"a ""b""\n"', b"3,z"]

    def test_quotes_within_a_plain_field_mean_nothing(self) -> None:
        assert cut_all(BARE_CSV, b'5" pipe\n6" pipe\n', max_size=8) == [b'5" pipe', b'6" pipe']

    def test_escaped_quotes_do_not_end_a_field(self) -> None:
        step = ReadStepCsv(escape="\\")
        assert cut_all(step, b'"a\\"\nb"\nc\n', max_size=3) == [b'"a\\"\nb"', b"c"]

    def test_the_quote_may_be_named_as_its_own_escape(self) -> None:
        assert cut_all(ReadStepCsv(escape='"'), b'"a","b\nc"\n"d"\n', max_size=3) == [b'"a","b\nc"', b'"d"']

    def test_a_header_may_be_quoted(self) -> None:
        assert cut_all(CSV, b'"a\nb",c\n1,2\n3,4', max_size=11) == [b'"a\nb",c\n1,2', b'"a\nb",c\n3,4']

    def test_an_open_quote_keeps_the_rest_together(self) -> None:
        assert cut_all(BARE_CSV, b'1\n"2\n3\n', max_size=2) == [b"1", b'"2\n3']

    def test_separators_are_one_character(self) -> None:
        with pytest.raises(MalformedBytesError, match="separator"):
            cut_all(ReadStepCsv(separator="::"), b"1")

    @given(
        st.lists(st.lists(st.text('ab,"\n ;é', min_size=1), min_size=2, max_size=3)),
        st.integers(1, 40),
        st.integers(1, 30),
    )
    def test_nothing_is_lost_or_reordered(self, rows: list[list[str]], max_size: int, chunk: int) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
        pieces = list(cut_counted(BARE_CSV, chunks(text.getvalue().encode(), chunk), max_size=max_size))
        read = [row for piece in pieces for row in csv.reader(io.StringIO(piece.data.decode(), newline=""))]
        assert read == rows
        assert sum(piece.records for piece in pieces) == len(rows)


class TestJson:
    def test_an_array_becomes_arrays(self) -> None:
        assert cut_all(ARRAY, b'[{"a":1}, {"a":2} ,{"a":3}]', max_size=18) == [b'[{"a":1},{"a":2}]', b'[{"a":3}]']

    def test_elements_keep_their_bytes(self) -> None:
        element = b'{ "a": [1.0e400, 18446744073709551616, {"b": "]}\\""}] }'
        assert cut_all(ARRAY, b"[" + element + b"]", chunk=1) == [b"[" + element + b"]"]

    def test_an_array_at_a_path_stays_there(self) -> None:
        data = b'{"x": [{"b": "]"}], "a": {"y": "}", "b": [1, {"c": 2}], "z": 0}}'
        step = ReadStepJson(sub_path="a.b")
        assert cut_all(step, data, max_size=15) == [b'{"a":{"b":[1]}}', b'{"a":{"b":[{"c": 2}]}}']

    def test_an_unreadable_element_is_alone(self) -> None:
        assert cut_all(ARRAY, b"[1,2,{tru},3]") == [b"[1,2]", b"[{tru}]", b"[3]"]

    @pytest.mark.parametrize("data", [b"", b"  \n", b"[]", b" [ ] "])
    def test_nothing_gives_no_message(self, data: bytes) -> None:
        assert cut_all(ARRAY, data) == []

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b'{"a":1}', "expected an array at its root, found '{\"a\":1}' at byte 0"),
            (b"[1 2]", "expected ',' or ']' after an element, found '2]' at byte 3"),
            (b"[1,", "expected a value, found the end at byte 3"),
            (b"[1,]", "expected a value, found ']' at byte 3"),
            (b'[{"a":"', "expected the end of a value"),
            (b"[1] x", "expected nothing after the array, found 'x' at byte 4"),
        ],
    )
    def test_what_is_no_array_is_refused(self, data: bytes, said: str) -> None:
        with pytest.raises(MalformedBytesError) as caught:
            cut_all(ARRAY, data)
        assert said in str(caught.value)

    def test_a_missing_path_is_refused(self) -> None:
        with pytest.raises(MalformedBytesError, match="the key 'b'"):
            cut_all(ReadStepJson(sub_path="a.b"), b'{"a": {"c": []}}')

    def test_an_element_without_bound_is_refused_by_number(self) -> None:
        with pytest.raises(RecordTooLargeError, match="element 2"):
            cut_all(ARRAY, b'[1,{"a":["' + b"x" * (MAX_RECORD_SIZE + 1), chunk=1 << 16)

    @given(
        st.lists(
            st.recursive(
                st.none() | st.integers() | st.text(),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
                max_leaves=6,
            )
        ),
        st.integers(1, 40),
        st.integers(1, 30),
        st.sampled_from([None, 1]),
    )
    def test_nothing_is_lost_or_reordered(
        self, values: list[object], max_size: int, chunk: int, indent: int | None
    ) -> None:
        data = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
        pieces = list(cut_counted(ARRAY, chunks(data, chunk), max_size=max_size))
        assert [value for piece in pieces for value in json.loads(piece.data)] == values
        assert sum(piece.records for piece in pieces) == len(values)

    def test_large_pieces_hold_what_is_readable_together_and_the_rest_alone(self) -> None:
        good = b'{"type": "x", "deep": {"a": [[1, 2], [{"b": "]}"}]]}}'
        deep = b'{"a":' * 20 + b"1" + b"}" * 20
        elements = [good] * 3000 + [b"{tru}"] + [good, deep] * 500 + [b"7", good]
        pieces = list(cut_counted(ARRAY, chunks(b"[" + b" ,\n".join(elements) + b"]", 9999), max_size=1 << 15))
        assert sum(piece.records for piece in pieces) == len(elements)
        assert [piece.data for piece in pieces if b"{tru}" in piece.data] == [b"[{tru}]"]
        read = [value for piece in pieces if b"{tru}" not in piece.data for value in json.loads(piece.data)]
        assert read == [json.loads(element) for element in elements if element != b"{tru}"]
        assert all(len(piece.data) <= 1 << 15 for piece in pieces)
        assert len(pieces) < 40


class TestGeoJson:
    def test_messages_are_collections(self) -> None:
        data = b'{"name": "x", "features": [{"a":1}, {"a":2}], "type": "FeatureCollection"}'
        assert cut_all(ReadStepGeoJson(), data, max_size=48) == [
            b'{"type":"FeatureCollection","features":[{"a":1}]}',
            b'{"type":"FeatureCollection","features":[{"a":2}]}',
        ]

    def test_lines_are_cut_as_lines(self) -> None:
        assert cut_all(ReadStepNdGeoJson(), b"11\n22\n33", max_size=6) == [b"11\n22", b"33"]

    def test_other_json_is_refused(self) -> None:
        with pytest.raises(MalformedBytesError, match="the key 'features'"):
            cut_all(ReadStepGeoJson(), b'{"type":"Feature"}')


def test_other_formats_are_refused() -> None:
    with pytest.raises(UncuttableFormatError, match="Parquet"):
        cut(ReadStepParquet(), [b"PAR1"])


def test_what_is_cut_is_read_however_large_the_record_and_what_is_around_it() -> None:
    assert MAX_RECORD_SIZE + MAX_AROUND_SIZE <= MAX_MESSAGE_SIZE
    assert MAX_MESSAGE_SIZE < 10 << 20 < TOPIC_MESSAGE_SIZE
    header = b"a" * (MAX_AROUND_SIZE - 1) + b"\n"
    [piece] = cut_all(ReadStepCsv(header=True), header + b"x" * MAX_RECORD_SIZE, chunk=1 << 20)
    assert len(piece) == MAX_MESSAGE_SIZE
    with pytest.raises(RecordTooLargeError, match="CSV header 1 is larger than the 1048576 bytes"):
        cut_all(ReadStepCsv(header=True), b"a" + header + b"x", chunk=1 << 20)
