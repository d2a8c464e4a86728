"""Slices folded into a state: of each key the latest row, unless that took it away."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.ingest.merge import aligned
from streaming_jobs.ingest.state.changes import data_columns, is_live, one_array
from streaming_jobs.ingest.state.duck import Side, last_rows, opened_duck
from streaming_jobs.ingest.state.row_file import RowFile, RowFileWriter
from streaming_jobs.ingest.state.slices import Unread, read_rows

if TYPE_CHECKING:
    from odf_common.metadata.fragments import DatasetVocabulary
    from odf_common.storage.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class Fold:
    """A state and the slices that follow it. Rows are numbered through both."""

    state: RowFile | None
    unread: Sequence[Unread]
    objects: ObjectStore
    vocabulary: DatasetVocabulary
    primary_key: Sequence[str]

    def write(self, path: Path, area: Path, on_rows: Callable[[int], None] | None = None) -> RowFile:
        """The state after the slices, in a new file; `area` is a folder for the time being.

        `on_rows` is told how many more rows of the slices were read.
        """
        schema = self._schema()
        live = self._live_rows(schema, area)
        with RowFileWriter(path, schema) as file:
            start, known = 0, 0 if self.state is None else self.state.num_rows
            for table in chain(self._old(), self._new()):
                rows = data_columns(table, self.vocabulary).filter(pa.array(live[start : start + table.num_rows]))
                start += table.num_rows
                if rows.num_rows:
                    file.write(aligned(rows, schema))
                if on_rows is not None and start > known:
                    on_rows(table.num_rows)
            return file.finish(is_durable=True)

    def _live_rows(self, schema: pa.Schema, area: Path) -> npt.NDArray[np.bool_]:
        known = 0 if self.state is None else self.state.num_rows
        live = np.ones(known + sum(each.rows for each in self.unread), np.bool_)
        last = np.zeros(len(live), np.bool_)
        operation = self.vocabulary.operation_type_column

        def keys() -> Iterator[pa.Table]:
            yield from self._old()
            start = known
            for table in self._new([*self.primary_key, operation]):
                operations = one_array(table[operation])
                live[start : start + table.num_rows] = is_live(operations).to_numpy(zero_copy_only=False)
                start += table.num_rows
                yield table

        key_schema = pa.schema(
            [schema.field(name) if name in schema.names else pa.field(name, pa.null()) for name in self.primary_key]
        )
        area.mkdir(parents=True, exist_ok=True)
        try:
            with opened_duck(area) as duck:
                for places in last_rows(duck, Side(keys, key_schema, self.primary_key)):
                    last[places] = True
        finally:
            shutil.rmtree(area, ignore_errors=True)
        return last & live

    def _old(self) -> Iterator[pa.Table]:
        if self.state is not None:
            yield from (pa.Table.from_batches([batch]) for batch in self.state.batches())

    def _new(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        for each in self.unread:
            for batch in read_rows(self.objects, each, self.vocabulary, columns):
                yield pa.Table.from_batches([batch])

    def _schema(self) -> pa.Schema:
        """The columns of all; a type that got wider is that of the newest."""
        found = {} if self.state is None else {column.name: column for column in self.state.schema}
        for each in self.unread:
            first = next(read_rows(self.objects, each, self.vocabulary))
            rows = data_columns(pa.Table.from_batches([first]), self.vocabulary)
            found |= {column.name: column for column in _plain(rows.schema)}
        return pa.schema(found.values())


def _plain(schema: pa.Schema) -> Iterable[pa.Field]:
    return (column.with_nullable(True).remove_metadata() for column in schema)
