"""Rows as values of a store: in front of each the number of its schema, which the store notes beside the values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.merge import aligned
from odf_common.ingest.row_codec import RowCodec
from streaming_jobs.ingest.state.store import Store

_NUMBER = np.dtype(">u4")
_END = 2**31 - 1  # of any value; binary_slice fails without one


class RowValues:
    """Encodes rows of any schema and decodes them to any other."""

    def __init__(self, store: Store) -> None:
        self._store = store
        schemas = {number: pa.ipc.read_schema(pa.py_buffer(note)) for number, note in store.notes().items()}
        self._codecs = {number: RowCodec(schema) for number, schema in schemas.items()}

    def encode(self, rows: pa.Table) -> pa.Array:
        """One value for each row."""
        number = self._number(pa.schema([column.with_nullable(True).remove_metadata() for column in rows.schema]))
        encoded = self._codecs[number].encode(rows)
        return pc.binary_join_element_wise(_prefix(number), encoded, b"")

    def decode(self, values: pa.Array, schema: pa.Schema) -> pa.Table:
        """The rows with the columns of a schema, null where they have none of that name."""
        if not len(values):
            return schema.empty_table()
        numbers = _numbers(values)
        tables, places = [], []
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            some = values if len(mine) == len(values) else values.take(pa.array(mine))
            rows = self._codecs[number].decode(pc.binary_slice(some, _NUMBER.itemsize, _END))
            tables.append(aligned(rows, schema))
            places.append(mine)
        if len(tables) == 1:
            return tables[0]
        return pa.concat_tables(tables).take(pa.array(np.argsort(np.concatenate(places), kind="stable")))

    def _number(self, schema: pa.Schema) -> int:
        for number, codec in self._codecs.items():
            if codec.schema.equals(schema):
                return number
        number = len(self._codecs)
        self._store.note(number, schema.serialize().to_pybytes())
        self._codecs[number] = RowCodec(schema)
        return number


def _prefix(number: int) -> bytes:
    return np.array([number], _NUMBER).tobytes()


def _numbers(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The numbers of the schemas of values."""
    first = values[0].as_py()[: _NUMBER.itemsize]
    if pc.all(pc.starts_with(values, first)).as_py():
        return np.full(len(values), np.frombuffer(first, _NUMBER)[0], np.uint32)
    return np.frombuffer(b"".join(pc.binary_slice(values, 0, _NUMBER.itemsize).to_pylist()), _NUMBER).astype(np.uint32)
