"""Files to take, made from the numbers of their records, so that they are the same in each run."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.streaming.events import COLUMNS

KEYED_COLUMNS = ("id BIGINT", "name STRING", "city STRING", "value DOUBLE", "count INT", "ok BOOLEAN")
"""Of records with a key; none of them is an event time, as snapshots rarely have one."""

_CHUNK = 100_000
_PRIME = 7_919_113  # no factor of the number of records: it puts them into an order of its own


def write_csv(events: Path, path: Path) -> Path:
    """Events as CSV with a header, value for value as their NDJSON has them."""
    names = [column.split()[0] for column in COLUMNS]
    with events.open("rb") as lines, path.open("wb") as file:
        file.write(",".join(names).encode() + b"\n")
        for line in lines:
            # `"event_time":"…","id":…`: names and values alternate, and no value has a comma or a quote.
            values = [pair.split(b":", 1)[1] for pair in line.rstrip(b"}\n")[1:].split(b",")]
            file.write(b",".join(values).replace(b'"', b"") + b"\n")
    return path


def write_repeated(events: Path, path: Path, times: int) -> Path:
    """The same events so many times, one behind the other."""
    with path.open("wb") as file:
        for _ in range(times):
            with events.open("rb") as part:
                shutil.copyfileobj(part, file, 1 << 20)
    return path


def write_keyed(path: Path, rows: int, *, changed: float, revision: int) -> Path:
    """Records with the keys 0 to `rows`, in no order, about 100 bytes each, as NDJSON.

    In every revision but the first, that share of them has other values than in the first one.
    """
    with path.open("wb") as file:
        for numbers in _chunks(rows):
            file.write(_lines(numbers, changed=changed if revision else 0.0, revision=revision))
    return path


def _chunks(rows: int) -> Iterator[npt.NDArray[np.int64]]:
    for start in range(0, rows, _CHUNK):
        yield np.arange(start, min(start + _CHUNK, rows)) * _PRIME % rows


def _lines(numbers: npt.NDArray[np.int64], *, changed: float, revision: int) -> bytes:
    is_changed = (numbers * 31 % 1000) < changed * 1000
    cents = numbers * 7919 % 1_000_003 + np.where(is_changed, revision * 1_000_003, 0)
    parts: list[pa.Array | str] = ['{"id":', _text(numbers), ',"name":"name of ', _text(numbers), '","city":"city-']
    parts += [_text(numbers * 31 % 10_000), '","value":', _text(cents), '.5,"count":', _text(numbers % 977)]
    parts += [',"ok":', pa.array(np.where(numbers % 97 == 0, "false", "true")), "}\n"]
    lines = pc.binary_join_element_wise(*parts, "")
    found = io.BytesIO()
    found.write(lines.buffers()[2])
    return found.getvalue()


def _text(numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())
