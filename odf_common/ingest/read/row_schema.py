"""The columns that a read step gives, and what each is called and typed where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odf_common.ingest.read.json_types import converted, stored_type, wire_type
from odf_common.ingest.read.texts import LAST_EVENT_TIME_MS

_EVENT_TIME = pa.timestamp("ms", "UTC")


@dataclass(frozen=True)
class RowSchema:
    """Columns as records name them. Declared ones are all there is; others may grow, and follow the rules of ODF.

    Where nothing is declared, event times are texts or Unix seconds, and columns with a reserved name get a `_` in
    front.
    """

    input: pa.Schema
    is_declared: bool
    event_time: str | None = None
    reserved: frozenset[str] = frozenset()

    @classmethod
    def declared(cls, columns: pa.Schema, *, event_time: str | None = None) -> RowSchema:
        """Exactly these columns."""
        return cls(columns, is_declared=True, event_time=event_time)

    @classmethod
    def known(cls, rows: pa.Schema, *, event_time: str | None = None, reserved: Iterable[str] = ()) -> RowSchema:
        """Columns of earlier rows, to which new ones may come."""
        names = frozenset(reserved)
        # A renamed column may come under either name.
        renamed = [pa.field(name, column.type) for column in rows for name in names if column.name == f"_{name}"]
        return cls(pa.schema([*rows, *renamed]), is_declared=False, event_time=event_time, reserved=names)

    def following(self, rows: pa.Schema) -> RowSchema:
        """For what comes behind rows with these columns."""
        return self if self.is_declared else RowSchema.known(rows, event_time=self.event_time, reserved=self.reserved)

    def widened(self, columns: pa.Schema) -> RowSchema:
        """With inferred columns."""
        fields = [
            column.with_type(_EVENT_TIME)
            if column.name == self.event_time and column.name not in self.input.names
            else column
            for column in columns
        ]
        return RowSchema(pa.schema(fields), self.is_declared, self.event_time, self.reserved)

    @cached_property
    def columns(self) -> tuple[tuple[str, pa.Field], ...]:
        """Names and columns of records."""
        return tuple((column.name, column) for column in self.input)

    @cached_property
    def wire(self) -> tuple[pa.Schema, ...]:
        """What to ask Arrow's parser for; where there are several forms, each row has one of them."""
        wire = pa.schema(column.with_type(wire_type(column.type, column.name)) for column in self.input)
        index = wire.get_field_index(self.event_time) if self.event_time and not self.is_declared else -1
        if index < 0 or not types.is_timestamp(self.input.field(index).type):
            return (wire,)
        return wire, wire.set(index, wire.field(index).with_type(pa.int64()))

    @cached_property
    def table(self) -> pa.Schema:
        """The columns of the rows."""
        columns: dict[str, pa.Field] = {}
        for column in self.input:
            name = self.row_name(column.name)
            columns.setdefault(name, pa.field(name, stored_type(column.type), column.nullable))
        return pa.schema(columns.values())

    def rows(self, parsed: pa.Table) -> pa.Table:
        """Parsed values as rows; ValueError when one does not fit its column."""
        columns: dict[str, pa.Array] = {}
        for column in self.input:
            array = converted(_combined(parsed[column.name]), column.type)
            name = self.row_name(column.name)
            columns[name] = _either(columns[name], array, name) if name in columns else array
        self.check_event_times(columns)
        return pa.Table.from_arrays([columns[name] for name in self.table.names], schema=self.table)

    def row_name(self, name: str) -> str:
        """What a column of records is called in rows."""
        return f"_{name}" if name in self.reserved else name

    def check_event_times(self, columns: Mapping[str, pa.Array]) -> None:
        """ValueError where an event time is a sentinel."""
        times = columns.get(self.event_time or "")
        if times is None or not (types.is_timestamp(times.type) or types.is_date(times.type)):
            return
        last = pc.max(times.cast(_EVENT_TIME, safe=False).cast(pa.int64())).as_py()
        if last is not None and last >= LAST_EVENT_TIME_MS:
            raise ValueError(f"column {self.event_time!r}: an event time in the year 9999 is no time of an event")


def _either(one: pa.Array, other: pa.Array, name: str) -> pa.Array:
    if pc.any(pc.and_(one.is_valid(), other.is_valid())).as_py():
        raise ValueError(f"two columns want to be called {name!r}")
    return pc.coalesce(one, other.cast(one.type))


def _combined(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
