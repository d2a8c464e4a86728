"""The logical hash of a slice beside bare SHA3-256 over the bytes it feeds; `large` measures a slice of a gigabyte."""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figures import medians, print_figure, seconds
from odf_common.data.digest_values import own_mask, value_bytes
from odf_common.data.logical_hash import logical_hash
from odf_common.data.slice_writer import SliceWriter
from odf_common.data.slices import read_slice

ROWS = 1_000_000
LARGE_ROWS = 19_000_000
CHUNK = 100_000  # rows
ROUNDS = 9

UTC_MS = pa.timestamp("ms", "UTC")
NOON = 1577880000000  # milliseconds

SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", UTC_MS, nullable=False),
        pa.field("event_time", UTC_MS),
        pa.field("city", pa.string()),
        pa.field("population", pa.int64()),
        pa.field("area", pa.float64()),
        pa.field("mayor", pa.string()),
    ]
)


def texts(random: np.random.Generator, rows: int) -> pa.Array:
    """Lower-case texts of 8 to 20 letters."""
    offsets = np.cumsum(np.concatenate([[0], random.integers(8, 21, rows)])).astype(np.int32)
    letters = random.integers(ord("a"), ord("z") + 1, offsets[-1], dtype=np.uint8)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


def with_nulls(random: np.random.Generator, array: pa.Array) -> pa.Array:
    """A fifth of the values becomes null."""
    rows = np.arange(len(array))
    return array.take(pa.array(rows, mask=random.random(len(array)) < 0.2))


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """The columns that the goal names."""
    random = np.random.default_rng(1)
    for start in range(0, rows, CHUNK):
        numbers = np.arange(start, start + CHUNK)
        columns = [
            pa.array(numbers),
            pa.array(np.zeros(CHUNK, np.int32)),
            pa.array(np.full(CHUNK, NOON)).cast(UTC_MS),
            pa.array(NOON + numbers * 7).cast(UTC_MS),
            texts(random, CHUNK),
            pa.array(random.integers(0, 1 << 40, CHUNK)),
            pa.array(random.random(CHUNK)),
            with_nulls(random, texts(random, CHUNK)),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def write(path: Path, rows: int) -> None:
    """Write a slice as the writer does, hashes included."""
    with SliceWriter(path, SCHEMA) as writer:
        for batch in batches(rows):
            writer.write(batch)


def fed_bytes(path: Path) -> int:
    """How many bytes the logical hash feeds to SHA3-256; the headers of eight columns do not count."""
    columns = (column for batch in read_slice(path) for column in batch.columns)
    return sum(memoryview(data).nbytes for column in columns for data in value_bytes(column, own_mask(column)))


def write_bare(path: Path, table: pa.Table) -> None:
    """What pyarrow alone needs to write the same file."""
    pq.write_table(table, path, version="1.0", use_dictionary=["op", "system_time"], store_schema=False)


def write_hashed(path: Path, table: pa.Table) -> None:
    """The same with both hashes."""
    with SliceWriter(path, SCHEMA) as writer:
        for batch in table.to_batches():
            writer.write(batch)


def main() -> None:
    """Print ratios, each taken in one run."""
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder, "slice"), Path(folder, "other")
        write(path, ROWS)
        zeros = bytes(fed_bytes(path))
        bare, logical = medians([lambda: hashlib.sha3_256(zeros).digest(), lambda: logical_hash(path)], rounds=ROUNDS)
        print_figure(
            "logical hash / SHA3-256 of the bytes fed", logical / bare, "ratio", goal="<= 2", rows=ROWS, size=len(zeros)
        )
        table = pa.Table.from_batches(batches(ROWS))
        parquet, hashed = medians([lambda: write_bare(other, table), lambda: write_hashed(other, table)], rounds=ROUNDS)
        print_figure("slice with both hashes / Parquet alone", hashed / parquet, "ratio", goal="-", rows=ROWS)


def large() -> None:
    """Print what a slice of a gigabyte takes, each step in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for step in LARGE_STEPS:
            command = [sys.executable, "-m", "benchmarks.logical_hash", step, str(Path(folder, "slice"))]
            subprocess.run(command, check=True)


def large_step(name: str, path: Path) -> None:
    """Print the seconds of one step, and the most memory that the whole process needed."""
    taken = seconds(lambda: LARGE_STEPS[name](path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # bytes
    print_figure(f"large slice: {name}", taken, "s", goal="-", peak=peak, size=path.stat().st_size, rows=LARGE_ROWS)


LARGE_STEPS: dict[str, Callable[[Path], object]] = {"write": lambda path: write(path, LARGE_ROWS), "hash": logical_hash}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["large"]:
            large()
        case [step, path]:
            large_step(step, Path(path))
        case _:
            main()
