from __future__ import annotations

import hashlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odf_common.data import parquet_file, slice_writer
from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import logical_hash
from odf_common.data.slice_writer import SliceWriter
from odf_common.data.slices import Slice, check_records, read_slice
from odf_common.errors import CorruptedError, MalformedBytesError, NotFoundError
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.metadata.fragments import DatasetVocabulary, DataSlice, OffsetInterval
from tests.unit.odf_common.data.tables import arrays, flat_types, nested_types
from tests.unit.odf_common.data.vectors import RECORDS, odf

NOON = 1577880000000  # milliseconds


def records(rows: int = 3, *, start: int = 0, **columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "offset": pa.array(range(start, start + rows), pa.int64()),
            "op": pa.array([0] * rows, pa.int32()),
            "system_time": pa.array([NOON] * rows).cast(pa.timestamp("ms", "UTC")),
            **columns,
        }
    )


def write(path: Path, *batches: pa.RecordBatch, vocabulary: DatasetVocabulary | None = None) -> Slice:
    with SliceWriter(path, batches[0].schema, vocabulary=vocabulary) as writer:
        for batch in batches:
            writer.write(batch)
    return writer.close()


def check(path: Path, promised: DataSlice, *, vocabulary: DatasetVocabulary | None = None) -> None:
    check_records(path, promised, place="data/f16", vocabulary=vocabulary)


def read(path: Path, **choice: Any) -> pa.Table:
    return pa.Table.from_batches(read_slice(path, **choice))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slice"


def test_a_slice_has_the_facts_that_a_block_promises(path: Path) -> None:
    written = write(path, odf())
    assert written.logical_hash.digest.hex() == RECORDS["odf"][1]
    assert written.physical_hash.digest == hashlib.sha3_256(path.read_bytes()).digest()
    assert written.offset_interval == OffsetInterval(start=0, end=2)
    assert written.size == path.stat().st_size
    assert written.path == path
    check(path, written.to_data_slice())


def test_records_come_back_as_they_were_written(path: Path) -> None:
    write(path, odf())
    assert read(path).to_pydict() == odf().to_pydict()
    assert read(path).schema.types == odf().schema.types


def test_offsets_may_begin_anywhere_and_go_on_over_batches(path: Path) -> None:
    written = write(path, records(3, start=7), records(0, start=99), records(2, start=10))
    assert written.offset_interval == OffsetInterval(start=7, end=11)
    assert read(path).num_rows == 5


def test_the_file_is_parquet_as_the_facts_want_it(path: Path) -> None:
    with_times = records(
        event_time=pa.array([1, None, 3]).cast(pa.timestamp("ms", "UTC")), city=pa.array(["a", "a", "a"])
    )
    write(path, with_times)
    file = pq.ParquetFile(path)
    group = file.metadata.row_group(0)
    columns = {column.path_in_schema: column for column in (group.column(i) for i in range(group.num_columns))}
    assert file.metadata.format_version == "1.0"
    assert file.metadata.metadata is None
    assert {column.compression for column in columns.values()} == {"SNAPPY"}
    assert {name for name, column in columns.items() if column.has_dictionary_page} == {"op", "system_time"}
    assert all(column.is_stats_set for column in columns.values())
    assert [columns[name].physical_type for name in ("offset", "op", "system_time", "event_time")] == [
        "INT64",
        "INT32",
        "INT64",
        "INT64",
    ]
    for name in ("system_time", "event_time"):
        logical = file.schema.column(list(columns).index(name)).logical_type
        assert str(logical).startswith("Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds")
    required = [file.schema.column(i).max_definition_level == 0 for i in range(len(columns))]
    assert required == [True, True, True, False, False]


def test_system_columns_take_the_types_that_are_written_everywhere(path: Path) -> None:
    odd = pa.record_batch(
        {
            "offset": pa.array([0, 1], pa.uint64()),
            "op": pa.array([0, 1], pa.uint8()),
            "system_time": pa.array([NOON * 1000] * 2).cast(pa.timestamp("us", "Europe/Paris")),
        }
    )
    write(path, odd)
    assert [field.type for field in pq.read_schema(path)] == [pa.int64(), pa.int32(), pa.timestamp("ms", "UTC")]


CHANGED_BY_WRITING = {
    "timestamp[s]": (pa.array([1, None, 3]).cast(pa.timestamp("s")), pa.timestamp("ms"), "1.0"),
    "another zone": (pa.array([1, None, 3]).cast(pa.timestamp("ms", "+01:00")), pa.timestamp("ms", "UTC"), "1.0"),
    "time32[s]": (pa.array([1, None, 3], pa.int32()).cast(pa.time32("s")), pa.time32("ms"), "1.0"),
    "date64": (pa.array([0, None, 86400000]).cast(pa.date64()), pa.date32(), "1.0"),
    "decimal32": (pa.array([Decimal(1), None, Decimal(3)], pa.decimal32(9, 0)), pa.decimal128(9, 0), "1.0"),
    "dictionary": (pa.array(["a", None, "b"]).dictionary_encode(), pa.string(), "1.0"),
    "view": (pa.array(["a", None, "b"], pa.string_view()), pa.string(), "1.0"),
    "fixed-size list": (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)), pa.list_(pa.int8()), "1.0"),
    "extension": (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef", None, None], pa.binary(16))),
        pa.binary(16),
        "1.0",
    ),
    "half float": (pa.array([1, None, 3]).cast(pa.float16()), pa.float16(), "1.0"),
    "uint32": (pa.array([1, None, 2**32 - 1], pa.uint32()), pa.uint32(), "2.6"),
    "nanoseconds": (pa.array([1, None, 3]).cast(pa.timestamp("ns")), pa.timestamp("ns"), "2.6"),
    "uint32 in a struct": (pa.array([{"a": 1}, None, {}], pa.struct([("a", pa.uint32())])), None, "2.6"),
}


@pytest.mark.parametrize("case", CHANGED_BY_WRITING)
def test_the_hash_is_that_of_the_file_even_if_writing_changes_a_type(case: str, path: Path) -> None:
    array, stored, version = CHANGED_BY_WRITING[case]
    batch = records(x=array)
    with SliceWriter(path, batch.schema) as writer:
        writer.write(batch)
    written = writer.close()
    assert written.logical_hash == logical_hash(path)
    assert writer.schema.field("x").type == (stored or array.type)
    assert read(path).schema.field("x").type == writer.schema.field("x").type
    assert pq.ParquetFile(path).metadata.format_version == version


def columns_of(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.RecordBatch]]:
    @st.composite
    def cut_records(draw: st.DrawFn) -> list[pa.RecordBatch]:
        rows = draw(st.integers(1, 12))
        field = pa.field("x", draw(kinds), draw(st.booleans()))
        batch = records(rows)
        whole = pa.record_batch([*batch.columns, draw(arrays(field, rows))], schema=pa.schema([*batch.schema, field]))
        end = draw(st.integers(0, rows))
        return [whole.slice(0, end), whole.slice(end)]

    return cut_records()


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=columns_of(flat_types()) | columns_of(nested_types(fixed_size_lists=False)))
def test_the_hash_is_that_of_the_file_whatever_its_columns(batches: list[pa.RecordBatch], path: Path) -> None:
    written = write(path, *batches)
    assert written.logical_hash == logical_hash(path)
    check(path, written.to_data_slice())


def test_row_groups_are_filled_over_batches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_writer, "MAX_ROW_GROUP_ROWS", 10)
    written = write(path, records(4), records(17, start=4), records(4, start=21))
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [10, 10, 5]
    assert written.logical_hash == logical_hash(path)


def test_wide_rows_fill_a_row_group_sooner(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_writer, "_MAX_ROW_GROUP_SIZE", 1000)
    wide = pa.array([b"x" * 600] * 2)
    write(path, *(records(2, start=start, wide=wide) for start in (0, 2, 4)))
    assert pq.ParquetFile(path).metadata.num_row_groups == 3


def test_names_come_from_the_vocabulary(path: Path) -> None:
    vocabulary = DatasetVocabulary(offset_column="o", operation_type_column="p", system_time_column="s")
    batch = records().rename_columns(["o", "p", "s"])
    written = write(path, batch, vocabulary=vocabulary)
    check(path, written.to_data_slice(), vocabulary=vocabulary)
    with pytest.raises(CorruptedError, match="no column offset"):
        check(path, written.to_data_slice())


def test_a_slice_without_system_columns_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="begins with the columns offset, op, system_time; this has offset"):
        SliceWriter(path, pa.schema([("offset", pa.int64())]))


@pytest.mark.parametrize(
    "names",
    [
        ["op", "offset", "system_time"],
        ["offset", "op", "x", "system_time"],
        ["offset", "op", "system_time", "x", "event_time"],
    ],
)
def test_system_columns_in_another_order_are_refused(path: Path, names: list[str]) -> None:
    with pytest.raises(ValueError, match=f"begins with the columns offset, op, system_time.* has {', '.join(names)}"):
        SliceWriter(path, pa.schema([(name, pa.int64()) for name in names]))


@pytest.mark.parametrize("first", [None, -1])
def test_offsets_begin_at_zero_or_above(path: Path, first: int | None) -> None:
    batch = records(1)
    batch = pa.record_batch([pa.array([first], pa.int64()), *batch.columns[1:]], names=batch.schema.names)
    with pytest.raises(ValueError, match=f"not at {first}"):
        write(path, batch)
    assert not path.exists()


def test_a_type_that_cannot_be_hashed_is_refused_before_a_file_is_made(path: Path) -> None:
    with pytest.raises(UnsupportedTypeError, match="column 'x'"):
        SliceWriter(path, records(x=pa.array([1, 2, 3], pa.duration("s"))).schema)
    assert not path.exists()


@pytest.mark.parametrize("start", [2, 4])
def test_offsets_must_follow_each_other(path: Path, start: int) -> None:
    with SliceWriter(path, records().schema) as writer:
        writer.write(records(3))
        with pytest.raises(ValueError, match=f"{start} came where 3 must be"):
            writer.write(records(1, start=start))


def test_an_offset_must_not_be_missing(path: Path) -> None:
    batch = records()
    holes = pa.record_batch([pa.array([0, None, 2], pa.int64()), *batch.columns[1:]], names=batch.schema.names)
    with pytest.raises(ValueError, match="None came where 1 must be"):
        write(path, holes)


def test_a_value_that_does_not_fit_is_refused(path: Path) -> None:
    schema = pa.schema([*records().schema, pa.field("x", pa.int8())])
    batch = records(x=pa.array([1, 2, 300]))
    with pytest.raises(ValueError, match="300"), SliceWriter(path, schema) as writer:
        writer.write(batch)
    assert not path.exists()


def test_a_missing_value_in_a_required_column_is_refused(path: Path) -> None:
    schema = pa.schema([*records().schema, pa.field("x", pa.int8(), nullable=False)])
    with pytest.raises(ValueError, match="null"):
        write(path, pa.record_batch([*records().columns, pa.array([1, None, 3], pa.int8())], schema=schema))
    assert not path.exists()


def test_a_slice_without_records_is_refused_and_leaves_no_file(path: Path) -> None:
    with pytest.raises(ValueError, match="without records"):
        write(path, records(0))
    assert not path.exists()


def test_an_exception_leaves_no_file(path: Path) -> None:
    def interrupted() -> None:
        with SliceWriter(path, records().schema) as writer:
            writer.write(records())
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert not path.exists()


def test_what_cannot_be_hashed_after_all_leaves_no_file(path: Path) -> None:
    with pytest.raises(UnsupportedTypeError):
        write(path, records(x=pa.nulls(3)))
    assert not path.exists()


def test_columns_can_be_chosen(path: Path) -> None:
    write(path, odf())
    assert read(path, columns=["city", "offset"]).to_pydict() == {
        "city": ["vancouver", "seattle", None],
        "offset": [0, 1, 2],
    }


def test_a_column_that_is_not_there_is_malformed(path: Path) -> None:
    write(path, odf())
    with pytest.raises(MalformedBytesError, match="no column town"):
        read(path, columns=["town"])


def test_a_missing_file_is_not_found(path: Path) -> None:
    with pytest.raises(NotFoundError):
        read(path)


@pytest.fixture
def unsigned(path: Path) -> Path:
    """A slice with the types of the specification's text."""
    table = pa.table(
        {
            "offset": pa.array([5, 6], pa.uint64()),
            "op": pa.array([0, 3], pa.uint8()),
            "x": pa.array([1, 2], pa.uint16()),
        }
    )
    pq.write_table(table, path)
    return path


def test_unsigned_offsets_and_operations_are_read_as_signed(unsigned: Path) -> None:
    assert read(unsigned).schema.types == [pa.int64(), pa.int32(), pa.uint16()]
    assert read(unsigned).to_pydict() == {"offset": [5, 6], "op": [0, 3], "x": [1, 2]}


def test_an_open_file_can_be_read(unsigned: Path) -> None:
    with unsigned.open("rb") as file:
        assert pa.Table.from_batches(read_slice(file)).num_rows == 2


def test_batches_are_smaller_where_rows_are_wide(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_file, "_BATCH_SIZE", 16_000)
    write(path, records(64, wide=pa.array([bytes(1000)] * 64)))
    sizes = [batch.num_rows for batch in read_slice(path)]
    assert sum(sizes) == 64
    assert max(sizes) <= 16


def test_the_first_difference_from_the_promise_is_told(path: Path) -> None:
    written = write(path, records())
    promised = written.to_data_slice()
    zeros = bytes(32)
    wrong: dict[str, dict[str, Any]] = {
        "its number of records is 3, 4 was promised": {"offset_interval": OffsetInterval(start=0, end=3)},
        "offset 1 was promised where its column 'offset' has 0": {"offset_interval": OffsetInterval(start=1, end=3)},
        f"offset {2**64 - 3} was promised where its column 'offset' has 0": {
            "offset_interval": OffsetInterval(start=2**64 - 3, end=2**64 - 1)
        },
        f"its logical hash is {written.logical_hash}": {"logical_hash": Multihash(written.logical_hash.code, zeros)},
    }
    for reason, change in wrong.items():
        with pytest.raises(CorruptedError, match=reason) as caught:
            check(path, promised.model_copy(update=change))
        assert caught.value.place == "data/f16"


def test_a_slice_that_is_not_parquet_is_corrupted(path: Path) -> None:
    written = write(path, records())
    path.write_bytes(bytes(written.size))
    with pytest.raises(CorruptedError, match="cannot be read as Parquet"):
        check(path, written.to_data_slice())


def test_a_missing_offset_inside_a_slice_is_corrupted(path: Path) -> None:
    def with_gap() -> Iterator[pa.RecordBatch]:
        yield records(2)
        yield records(1, start=3)

    pq.write_table(pa.Table.from_batches(with_gap()), path)
    written = Slice(
        path=path,
        logical_hash=logical_hash(path),
        physical_hash=sha3_256(path.read_bytes()),
        offset_interval=OffsetInterval(start=0, end=2),
        size=path.stat().st_size,
    )
    with pytest.raises(CorruptedError, match="offset 2 was promised where its column 'offset' has 3"):
        check(path, written.to_data_slice())


HOSTILE_OFFSETS = {
    "a list": ([pa.array([[0]])], ["offset"], "'offset' of a slice has the type list"),
    "a bool": ([pa.array([False])], ["offset"], "'offset' of a slice has the type bool"),
    "a float": ([pa.array([0.0])], ["offset"], "'offset' of a slice has the type double"),
    "a decimal": ([pa.array([Decimal(0)])], ["offset"], "'offset' of a slice has the type decimal"),
    "two columns": ([pa.array([0])] * 2, ["offset"] * 2, "2 columns 'offset'"),
    "another column twice": ([pa.array([0])] * 3, ["offset", "x", "x"], "the column x more than once"),
    "beyond int64": ([pa.array([2**64 - 1], pa.uint64())], ["offset"], "cannot be read as Parquet"),
    "none": ([pa.array([0])], ["x"], "no column offset; it has x"),
}


@pytest.mark.parametrize("case", HOSTILE_OFFSETS)
def test_a_slice_needs_one_column_of_integer_offsets(case: str, path: Path) -> None:
    columns, names, reason = HOSTILE_OFFSETS[case]
    pq.write_table(pa.Table.from_arrays(columns, names), path)
    with pytest.raises(MalformedBytesError, match=reason):
        read(path)
    promised = DataSlice(
        logical_hash=logical_hash(path),
        physical_hash=sha3_256(b""),
        offset_interval=OffsetInterval(start=0, end=0),
        size=1,
    )
    with pytest.raises(CorruptedError, match=reason):
        check(path, promised)


SHARED = ["x" * 1000, None, "y" * 500] * 50
SHARING = {
    "a text": pa.array(SHARED),
    "bytes": pa.array(SHARED).cast(pa.binary()),
    "a dictionary": pa.array(SHARED).dictionary_encode(),
}


@pytest.mark.parametrize("case", SHARING)
@pytest.mark.parametrize("group_rows", [150, 70])
def test_texts_that_rows_share_do_not_fill_the_memory(
    case: str, group_rows: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_file, "_BATCH_SIZE", 10_000)
    table = pa.table({"offset": pa.array(range(150)), "x": SHARING[case]})
    pq.write_table(table, path, row_group_size=group_rows)
    batches = list(read_slice(path))
    assert pa.Table.from_batches(batches).to_pydict() == table.to_pydict()
    assert all(batch.nbytes < 12_000 for batch in batches)
    assert not any(isinstance(kind, pa.DictionaryType) for kind in batches[0].schema.types)
    plain = pa.table({"offset": table["offset"], "x": pa.array(table["x"].to_pylist(), batches[0].schema.types[1])})
    other = path.with_name("plain")
    pq.write_table(plain, other, row_group_size=group_rows, use_dictionary=False)
    assert logical_hash(path) == logical_hash(other)
