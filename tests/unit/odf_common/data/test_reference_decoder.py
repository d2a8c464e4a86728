from __future__ import annotations

import base64
import errno
import io
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from odf_common.data import reference_decoder
from odf_common.data.logical_hash import LogicalHasher, logical_hash
from odf_common.data.parquet_file import conformed, opened
from odf_common.data.reference_decoder import is_cut_sensitive, reference_schema, with_leftovers
from odf_common.errors import MalformedBytesError, NotFoundError
from tests.unit.odf_common.data.oracle import decoded_by_the_reference, record_digest
from tests.unit.odf_common.data.tables import batches, flat_types, nested_types


def parquet(batch: pa.RecordBatch | pa.Table, **settings: Any) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    pq.write_table(table, sink, version="2.6", **settings)
    return sink.getvalue()


def nullable_struct(members: list[pa.Array], present: list[bool]) -> pa.RecordBatch:
    mask = pa.array([not flag for flag in present])
    return pa.record_batch({"s": pa.StructArray.from_arrays(members, ["v"], mask=mask)})


def stored_numbers(batch: pa.RecordBatch) -> list[int]:
    member = batch.column(0).field(0)
    return memoryview(member.buffers()[1]).cast("q").tolist()[: len(member)]


def test_values_stay_where_they_were_decoded_before_they_were_moved_to_their_rows() -> None:
    batch = nullable_struct([pa.array([None, 5, None, 6, None, None])], [True, True, False, True, True, True])
    # 5 and 6 were decoded to rows 0 and 1, then moved to rows 3 and 1; the rest of the buffer is zero.
    assert stored_numbers(with_leftovers(batch, [0, 6])) == [5, 5, 0, 6, 0, 0]


def test_each_row_group_is_decoded_on_its_own() -> None:
    batch = nullable_struct([pa.array([None, 5, None, 6])], [True] * 4)
    assert stored_numbers(with_leftovers(batch, [0, 4])) == [5, 5, 0, 6]
    assert stored_numbers(with_leftovers(batch, [0, 1, 4])) == [0, 5, 6, 6]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize("text", ["a", "longer than a view holds by itself"])
def test_views_stay_where_they_were_decoded_too(kind: pa.DataType, text: str) -> None:
    present = [True, True, True, False]
    decoded = with_leftovers(nullable_struct([pa.array([None, text, None, None], kind)], present), [0, 4])
    expected = nullable_struct([pa.array([text, text, "", ""], kind)], present)
    assert digest(decoded) == digest(expected)


def test_a_view_under_a_null_that_points_nowhere_is_refused() -> None:
    nowhere = struct.pack("<i4sii", 99, b"none", 7, 7)
    views = pa.Array.from_buffers(pa.string_view(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(nowhere + bytes(16))])
    with pytest.raises(MalformedBytesError, match="points nowhere"):
        digest(nullable_struct([views], [True, False]))


def digest(batch: pa.RecordBatch) -> bytes:
    hasher = LogicalHasher(batch.schema)
    hasher.update(batch)
    return hasher.finish().digest


def test_flat_columns_are_left_alone() -> None:
    batch = pa.record_batch({"a": pa.array([1, None, 3])})
    assert with_leftovers(batch, [0, 3]).column(0).buffers() == batch.column(0).buffers()


def a_struct(*, nullable: bool, member_nullable: bool) -> pa.Schema:
    member = pa.field("v", pa.int32(), member_nullable)
    return pa.schema([pa.field("s", pa.struct([member]), nullable)])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (pa.schema([("a", pa.int32()), ("l", pa.list_(pa.int8()))]), False),
        (a_struct(nullable=True, member_nullable=True), True),
        (a_struct(nullable=True, member_nullable=False), False),
        (a_struct(nullable=False, member_nullable=True), False),
        (pa.schema([pa.field("o", pa.struct(a_struct(nullable=True, member_nullable=True)), nullable=False)]), True),
        (pa.schema([pa.field("o", pa.struct(a_struct(nullable=False, member_nullable=True)))]), True),
    ],
)
def test_only_a_nullable_member_of_a_nullable_struct_makes_the_hash_depend_on_the_cut(
    schema: pa.Schema, expected: bool
) -> None:
    assert is_cut_sensitive(schema) is expected


EMBEDDED = [
    (pa.int64(), pa.date64()),
    (pa.date32(), pa.date64()),
    (pa.int64(), pa.timestamp("s")),
    (pa.int32(), pa.time32("s")),
    (pa.decimal128(5, 2), pa.decimal256(5, 2)),
    (pa.binary(), pa.string()),
    (pa.list_(pa.int64()), pa.list_(pa.date64())),
    (pa.struct([("v", pa.int64())]), pa.struct([("v", pa.date64())])),
]


def with_embedded_schema(schema: pa.Schema, text: bytes) -> pa.BufferReader:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.add_key_value_metadata({"ARROW:schema": text})
    return pa.BufferReader(sink.getvalue())


@pytest.mark.parametrize(("stored", "embedded"), EMBEDDED, ids=str)
def test_an_embedded_schema_tells_what_parquet_has_no_words_for(stored: pa.DataType, embedded: pa.DataType) -> None:
    hint = base64.b64encode(pa.schema([("a", embedded)]).serialize().to_pybytes())
    with opened(with_embedded_schema(pa.schema([("a", stored)]), hint)) as file:
        assert str(reference_schema(file).field("a").type).replace("element", "item") == str(embedded)


@pytest.mark.parametrize("text", [b"?", b"AAAA", base64.b64encode(b"not a message at all")])
def test_a_broken_embedded_schema_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedBytesError):
        logical_hash(with_embedded_schema(pa.schema([("a", pa.int32())]), text))


def test_bytes_that_are_not_parquet_are_malformed() -> None:
    with pytest.raises(MalformedBytesError, match="cannot be read as Parquet"):
        logical_hash(pa.BufferReader(b"PAR1 and nothing more"))


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        logical_hash(tmp_path / "nowhere")


class FailingDisk(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(errno.EIO, "the disk gave up")


def test_an_error_of_the_file_system_is_no_fault_of_the_bytes() -> None:
    with pytest.raises(OSError, match="the disk gave up"):
        logical_hash(FailingDisk(bytes(1000)))


@given(batch=batches(flat_types()), stored=st.booleans())
def test_a_flat_file_has_the_hash_of_its_rows(batch: pa.RecordBatch, stored: bool) -> None:
    data = parquet(batch, store_schema=stored)
    assert logical_hash(pa.BufferReader(data)).digest.hex() == record_digest([read_at_once(data)])


@pytest.mark.slow
@given(
    batch=batches(nested_types(fixed_size_lists=False), max_rows=30),
    batch_rows=st.integers(1, 12),
    group_rows=st.integers(1, 12),
    stored=st.booleans(),
)
def test_a_nested_file_has_the_hash_that_the_reference_finds(  # pyarrow cannot read fixed-size lists in null structs
    batch: pa.RecordBatch, batch_rows: int, group_rows: int, stored: bool
) -> None:
    try:
        data = parquet(batch, store_schema=stored, row_group_size=group_rows)
    except pa.ArrowNotImplementedError:
        reject()  # pyarrow cannot write required views in structs that are null
    groups = range(0, batch.num_rows, group_rows)
    whole = read_at_once(data)
    record = []
    for start in range(0, batch.num_rows, batch_rows):
        part = whole.slice(start, batch_rows)
        borders = {0, part.num_rows, *(group - start for group in groups if start < group < start + part.num_rows)}
        record.append(decoded_by_the_reference(part, sorted(borders)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference_decoder, "REFERENCE_BATCH_ROWS", batch_rows)
        assert logical_hash(pa.BufferReader(data)).digest.hex() == record_digest(record or [whole])


def read_at_once(data: pa.Buffer) -> pa.RecordBatch:
    with opened(pa.BufferReader(data)) as file:
        schema = reference_schema(file)
        whole = file.read().combine_chunks().to_batches()
        return conformed(whole[0], schema) if whole else empty(schema)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def test_rows_that_must_not_be_cut_are_refused_when_they_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = nullable_struct([pa.array(["x" * 1000] * 100)], [True] * 100)
    data = parquet(shared)
    assert data.size < 10_000
    logical_hash(pa.BufferReader(data))
    monkeypatch.setattr(reference_decoder, "_MAX_EXPANDED_SIZE", 90_000)
    with pytest.raises(MalformedBytesError, match="90000 can be hashed"):
        logical_hash(pa.BufferReader(data))


@pytest.mark.parametrize("row_group_size", [1, 2, 9])
def test_texts_in_dictionaries_do_not_change_how_rows_are_cut(
    monkeypatch: pytest.MonkeyPatch, row_group_size: int
) -> None:
    members = [pa.array([None] * 9, pa.int8()), pa.array([None] * 9, pa.list_(pa.int8()))]
    struct = pa.StructArray.from_arrays(members, names=["number", "list"], mask=pa.array([True] * 8 + [False]))
    batch = pa.record_batch({"struct": struct, "text": pa.array([None] * 9, pa.string())})
    monkeypatch.setattr(reference_decoder, "REFERENCE_BATCH_ROWS", 3)
    plain, shared = (
        parquet(batch, row_group_size=row_group_size, use_dictionary=use_dictionary) for use_dictionary in (False, True)
    )
    assert logical_hash(pa.BufferReader(plain)) == logical_hash(pa.BufferReader(shared))
