"""Rows of slices as plain values for people and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

from odf_common.storage.layout import ObjectKind

if TYPE_CHECKING:
    import pyarrow as pa

    from odf_common.identity.multihash import Multihash
    from odf_common.storage.ports import ObjectStore

_BATCH = 10_000  # rows


# Many programs end lines at these, and JSON leaves them as they are.
_OTHER_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


def json_line(row: dict[str, Any]) -> str:
    """A row as one line, for any reader of lines."""
    return json.dumps(row, ensure_ascii=False).translate(_OTHER_LINE_ENDS)


def last_rows(objects: ObjectStore, slice_hash: Multihash, count: int) -> list[dict[str, Any]]:
    """The last rows of a slice, reading no more row groups than they need."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with objects.open_file(ObjectKind.DATA, slice_hash) as file, pq.ParquetFile(file) as parquet:
        groups: list[pa.Table] = []
        for index in range(parquet.num_row_groups - 1, -1, -1):
            if sum(group.num_rows for group in groups) >= count:
                break
            groups.insert(0, parquet.read_row_group(index))
        if not groups:
            return []
        table = pa.concat_tables(groups)
        return [row for batch in table.slice(max(table.num_rows - count, 0)).to_batches() for row in plain_rows(batch)]


def rows_from(objects: ObjectStore, slice_hash: Multihash, start: int) -> Iterator[dict[str, Any]]:
    """The rows of a slice behind the first `start`, as a stream."""
    import pyarrow.parquet as pq

    with objects.open_file(ObjectKind.DATA, slice_hash) as file, pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(_BATCH):
            yield from plain_rows(batch.slice(min(start, batch.num_rows)))
            start = max(start - batch.num_rows, 0)


def plain_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows with values that JSON knows; what it does not know is written as text."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in map(_readable, batch.columns)]
    for values in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, values, strict=True))


def _readable(column: pa.Array) -> pa.Array:
    """Nanoseconds are more than Python's times hold."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            text = value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
            return text.replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case _:
            return str(value)
