from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.data import digest_values
from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import HashingBehind, LogicalHasher, array_digest
from odf_common.identity.multihash import ARROW0_SHA3_256
from tests.unit.odf_common.data import vectors
from tests.unit.odf_common.data.oracle import record_digest
from tests.unit.odf_common.data.tables import batches, flat_types, nested_types
from tests.unit.odf_common.data.vectors import ARRAYS, RECORDS, ArrayVector


def digest(*record: pa.RecordBatch) -> str:
    hasher = LogicalHasher(record[0].schema)
    for batch in record:
        hasher.update(batch)
    return hasher.finish().digest.hex()


def digest_of(array: pa.Array, *, name: str = "x") -> str:
    return digest(pa.record_batch({name: array}))


@pytest.fixture(params=ARRAYS)
def array_vector(request: pytest.FixtureRequest) -> ArrayVector:
    return ARRAYS[request.param]


def test_an_array_has_the_digest_of_the_published_crate(array_vector: ArrayVector) -> None:
    assert array_digest(array_vector.to_array()).hex() == array_vector.array


def test_a_record_of_one_column_has_the_digest_of_the_published_crate(array_vector: ArrayVector) -> None:
    assert digest_of(array_vector.to_array()) == array_vector.record


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_the_digest_of_the_published_crate(name: str) -> None:
    record, expected = RECORDS[name]
    assert digest(*record) == expected


@pytest.mark.parametrize("name", RECORDS)
def test_the_oracle_of_these_tests_agrees_with_the_published_crate(name: str) -> None:
    record, expected = RECORDS[name]
    assert record_digest(record) == expected


def test_the_hash_is_a_multihash_of_its_own_kind() -> None:
    hasher = LogicalHasher(vectors.odf().schema)
    hasher.update(vectors.odf())
    assert hasher.finish().code == ARROW0_SHA3_256
    assert str(hasher.finish()).startswith("f9680c00120")


EQUAL = {
    "a struct that may be null and never is": (
        digest(vectors.nested()),
        digest(
            pa.record_batch(
                vectors.nested().columns,
                schema=pa.schema(
                    [vectors.nested().schema.field("a"), vectors.nested().schema.field("b").with_nullable(False)]
                ),
            )
        ),
    ),
    "the same rows in two batches": (digest(*vectors.two_and_one(vectors.odf())), RECORDS["odf"][1]),
    "fixed-size binary": (digest_of(pa.array([b"one", b"two"], pa.binary(3))), ARRAYS["binary"].record),
    "large binary": (digest_of(pa.array([b"one", b"two"], pa.large_binary())), ARRAYS["binary"].record),
    "binary view": (digest_of(pa.array([b"one", b"two"], pa.binary_view())), ARRAYS["binary"].record),
    "large utf8": (digest_of(pa.array(["foo", "bar", "baz"], pa.large_string())), ARRAYS["utf8"].record),
    "utf8 view": (
        digest_of(pa.array(["foo", "bar", None, "baz"], pa.string_view())),
        ARRAYS["utf8 with a null"].record,
    ),
    "dictionary": (
        digest_of(pa.array(["foo", "bar", None, "baz"]).dictionary_encode()),
        ARRAYS["utf8 with a null"].record,
    ),
    "dictionary that holds the null": (
        digest_of(pa.DictionaryArray.from_arrays([0, 2, 1, 3], ["foo", None, "bar", "baz"])),
        ARRAYS["utf8 with a null"].record,
    ),
    "a bitmap without nulls": (
        digest_of(pa.Array.from_buffers(pa.int32(), 3, [pa.py_buffer(b"\7"), ARRAYS["int32"].to_array().buffers()[1]])),
        ARRAYS["int32"].record,
    ),
    "a slice of a longer array": (digest_of(pa.array([9, 1, 2, 3, 9], pa.int32())[1:4]), ARRAYS["int32"].record),
    "a slice of booleans": (
        digest_of(pa.array([True] * 11 + [None, False, True, False, None, True, False])[11:17]),
        ARRAYS["bool"].record,
    ),
    "an extension type": (
        digest_of(pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16)))),
        digest_of(pa.array([b"0123456789abcdef"], pa.binary(16))),
    ),
}


@pytest.mark.parametrize("case", EQUAL)
def test_what_means_the_same_has_the_same_hash(case: str) -> None:
    one, other = EQUAL[case]
    assert one == other


DIFFERENT = {
    "signed and unsigned": (ARRAYS["int32"].record, ARRAYS["uint32"].record),
    "with and without time zone": (ARRAYS["timestamp[ms, UTC]"].record, ARRAYS["timestamp[ms]"].record),
    "two names of UTC": (
        ARRAYS["timestamp[ms, UTC]"].record,
        digest_of(pa.array([0, 1577880000000, None]).cast(pa.timestamp("ms", "+00:00"))),
    ),
    "one more empty text": (ARRAYS["utf8"].record, digest_of(pa.array(["foo", "bar", "", "baz"]))),
    "empty and null": (digest_of(pa.array([""])), digest_of(pa.array([None], pa.string()))),
    "a column's name": (ARRAYS["int32"].record, digest_of(ARRAYS["int32"].to_array(), name="y")),
    "a struct's name": (digest(vectors.nested()), digest(vectors.nested().rename_columns(["a", "c"]))),
    "a member's name": (
        digest_of(pa.array([{"c": 1}])),
        digest_of(pa.array([{"d": 1}])),
    ),
    "an item that slides to the next list": (
        digest_of(pa.array([[1, 2], [3]])),
        digest_of(pa.array([[1], [2, 3]])),
    ),
    "zero and minus zero": (digest_of(pa.array([0.0])), digest_of(pa.array([-0.0]))),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_has_another_hash(case: str) -> None:
    one, other = DIFFERENT[case]
    assert one != other


@pytest.mark.parametrize(
    "unhashable",
    [
        pa.duration("s"),
        pa.map_(pa.string(), pa.int32()),
        pa.list_(pa.struct([("a", pa.int32())])),
        pa.month_day_nano_interval(),
        pa.dense_union([pa.field("a", pa.int32())]),
        pa.run_end_encoded(pa.int32(), pa.int8()),
        pa.list_view(pa.int8()),
    ],
    ids=str,
)
def test_a_type_that_the_digest_only_reserves_is_refused_with_the_name_of_its_column(unhashable: pa.DataType) -> None:
    schema = pa.schema([pa.field("outer", pa.struct([pa.field("inner", unhashable)]))])
    with pytest.raises(UnsupportedTypeError, match=r"column 'outer\.inner': the logical hash has no form for the type"):
        LogicalHasher(schema)


def test_a_column_of_type_null_has_a_hash_only_without_rows() -> None:
    hasher = LogicalHasher(pa.schema([("n", pa.null())]))
    hasher.update(pa.record_batch({"n": pa.nulls(0)}))
    with pytest.raises(UnsupportedTypeError):
        hasher.update(pa.record_batch({"n": pa.nulls(1)}))


def test_a_batch_with_another_schema_is_refused() -> None:
    hasher = LogicalHasher(pa.schema([("a", pa.int32())]))
    with pytest.raises(ValueError, match="promised"):
        hasher.update(pa.record_batch({"a": pa.array([1], pa.int64())}))


def test_more_may_follow_after_the_hash_was_asked_for() -> None:
    first, second = vectors.two_and_one(vectors.odf())
    hasher = LogicalHasher(first.schema)
    hasher.update(first)
    assert hasher.finish().digest.hex() == digest(first)
    hasher.update(second)
    assert hasher.finish().digest.hex() == RECORDS["odf"][1]


def test_what_lies_under_the_nulls_of_a_list_is_not_hashed() -> None:
    offsets = pa.array([0, 2, 4, 5], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 7, 7, 3]), mask=pa.array([False, True, False]))
    assert digest_of(lists) == digest_of(pa.array([[1, 2], None, [3]]))


def test_hashing_behind_reports_what_went_wrong() -> None:
    behind = HashingBehind(LogicalHasher(pa.schema([("a", pa.int32())])))
    behind.update(pa.record_batch({"a": pa.array([1], pa.int64())}))
    with pytest.raises(ValueError, match="promised"):
        behind.close()
    behind.close()


def cut(batch: pa.RecordBatch, places: Sequence[int]) -> list[pa.RecordBatch]:
    ends = [*sorted(min(place, batch.num_rows) for place in places), batch.num_rows]
    starts = [0, *ends]
    return [batch.slice(start, end - start) for start, end in zip(starts, ends, strict=False)]


@given(batch=batches(flat_types()), places=st.lists(st.integers(0, 12), max_size=4))
def test_the_cut_into_batches_is_no_matter_without_structs(batch: pa.RecordBatch, places: list[int]) -> None:
    assert digest(*cut(batch, places)) == digest(batch)


@given(batch=batches(flat_types()))
def test_the_hash_is_that_of_the_oracle_without_structs(batch: pa.RecordBatch) -> None:
    assert digest(batch) == record_digest([batch])


@pytest.mark.slow
@given(batch=batches(nested_types()), places=st.lists(st.integers(0, 12), max_size=3))
def test_the_hash_is_that_of_the_oracle_with_structs(batch: pa.RecordBatch, places: list[int]) -> None:
    record = cut(batch, places)
    assert digest(*record) == record_digest(record)


@given(batch=batches(nested_types()), rows=st.integers(1, 5))
def test_values_may_be_fed_in_pieces(batch: pa.RecordBatch, rows: int) -> None:
    expected = digest(batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest_values, "_CHUNK_ROWS", rows)
        assert digest(batch) == expected


def test_bits_of_not_a_number_are_kept() -> None:
    quiet, payload = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    assert digest_of(pa.array([quiet])) != digest_of(pa.array([payload]))
