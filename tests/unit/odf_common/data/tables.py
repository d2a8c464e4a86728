"""Hypothesis strategies for Arrow arrays and record batches of every type that has a logical hash."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import types

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [pa.decimal32(9, 2), pa.decimal64(18, 0), pa.decimal128(38, 10), pa.decimal256(76, 4)]
TEMPORAL = [
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.timestamp("s"),
    pa.timestamp("ms", "UTC"),
    pa.timestamp("us", "+00:00"),
    pa.timestamp("ns", "Europe/Paris"),
]
FIXED_WIDTH = [*INTEGERS, *FLOATS, *DECIMALS, *TEMPORAL, pa.bool_(), pa.binary(3)]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BINARIES = [pa.binary(), pa.large_binary(), pa.binary_view()]
_EXACT = Context(prec=100)
LEAVES = [*FIXED_WIDTH, *TEXTS, *BINARIES]

_LISTS: tuple[Callable[[pa.DataType], pa.DataType], ...] = (pa.list_, pa.large_list, lambda item: pa.list_(item, 2))


def flat_types(*, fixed_size_lists: bool = True) -> st.SearchStrategy[pa.DataType]:
    """Any type but structs; lists nest."""
    layouts = _LISTS if fixed_size_lists else _LISTS[:2]

    def lists(items: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        return st.builds(lambda layout, item: layout(item), st.sampled_from(layouts), items)

    return st.recursive(st.sampled_from(LEAVES), lists, max_leaves=3)


def nested_types(*, fixed_size_lists: bool = True) -> st.SearchStrategy[pa.DataType]:
    """Structs within structs, members nullable or not."""
    return st.recursive(flat_types(fixed_size_lists=fixed_size_lists), _struct_types, max_leaves=5)


def batches(data_types: st.SearchStrategy[pa.DataType], *, max_rows: int = 12) -> st.SearchStrategy[pa.RecordBatch]:
    """Record batches of one to three columns, sometimes cut out of longer ones."""

    @st.composite
    def batch(draw: st.DrawFn) -> pa.RecordBatch:
        rows = draw(st.integers(0, max_rows))
        columns = draw(st.lists(data_types, min_size=1, max_size=3))
        fields = [pa.field(f"column {i}", kind, draw(st.booleans())) for i, kind in enumerate(columns)]
        whole = pa.record_batch([draw(arrays(field, rows)) for field in fields], schema=pa.schema(fields))
        start = draw(st.integers(0, rows))
        return whole.slice(start, draw(st.integers(0, rows - start)))

    return batch()


def arrays(field: pa.Field, rows: int) -> st.SearchStrategy[pa.Array]:
    """Arrays of `rows` values of a field's type, with nulls if it may have them."""

    @st.composite
    def array(draw: st.DrawFn) -> pa.Array:
        present = draw(st.lists(st.booleans(), min_size=rows, max_size=rows)) if field.nullable else [True] * rows
        if types.is_struct(field.type):
            members = [draw(arrays(member, rows)) for member in field.type]
            mask = pa.array([not flag for flag in present], pa.bool_())
            return pa.StructArray.from_arrays(members, fields=list(field.type), mask=mask)
        values = draw(st.lists(_values(field.type), min_size=rows, max_size=rows))
        return to_array([value if flag else None for value, flag in zip(values, present, strict=True)], field.type)

    return array()


def to_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """An array of Python values, temporal ones given as numbers in their unit."""
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _list_array(values, kind)
    if types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if types.is_float16(kind):
        return pa.array([None if value is None else np.float16(value) for value in values], kind)
    return pa.array(values, kind)


def _list_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    mask = pa.array([value is None for value in values], pa.bool_())
    under_null = [None] * kind.list_size if types.is_fixed_size_list(kind) else []
    rows = [under_null if value is None else value for value in values]
    items = to_array([item for row in rows for item in row], kind.value_type)
    if types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=mask)
    offsets = pa.array(np.cumsum([0, *map(len, rows)]))
    if types.is_list(kind):
        return pa.ListArray.from_arrays(offsets.cast(pa.int32()), items, type=kind, mask=mask)
    return pa.LargeListArray.from_arrays(offsets, items, type=kind, mask=mask)


def _struct_types(members: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.tuples(members, st.booleans())
    return st.lists(fields, min_size=1, max_size=3).map(
        lambda chosen: pa.struct([pa.field(f"m{i}", kind, nullable) for i, (kind, nullable) in enumerate(chosen)])
    )


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if types.is_list(kind) or types.is_large_list(kind):
        return st.lists(st.none() | _values(kind.value_type), max_size=3)
    if types.is_fixed_size_list(kind):
        return st.lists(st.none() | _values(kind.value_type), min_size=kind.list_size, max_size=kind.list_size)
    if types.is_integer(kind):
        least = -(2 ** (kind.bit_width - 1)) if types.is_signed_integer(kind) else 0
        return st.integers(least, least + 2**kind.bit_width - 1)
    if types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if types.is_decimal(kind):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(lambda digits: Decimal(digits).scaleb(-kind.scale, _EXACT))
    if types.is_temporal(kind):
        return st.integers(0, 86_399) if not types.is_date64(kind) else st.integers(0, 99).map(lambda d: d * 86_400_000)
    if types.is_boolean(kind):
        return st.booleans()
    if types.is_fixed_size_binary(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    return st.text(max_size=20) if "string" in str(kind) else st.binary(max_size=20)
