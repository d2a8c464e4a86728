"""The two questions that are put to DuckDB, which answers them within bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_common.ingest.merge import SnapshotRefusedError, aligned
from odf_common.ingest.messages import Code, Problem
from streaming_jobs.ingest.state.changes import one_array
from streaming_jobs.ingest.state.forms import key_form, value_form

MEMORY_MIB = 512

_THREADS = min(4, os.cpu_count() or 1)
_AT_ONCE = 1 << 16  # rows

Places = npt.NDArray[np.int64]


@contextmanager
def opened_duck(folder: Path, memory_mib: int = MEMORY_MIB) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that keeps to its memory, and a folder for the rest; SnapshotRefusedError where both are full."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory_mib}MiB",
        "temp_directory": str(folder),
        "threads": _THREADS,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        with duckdb.connect(":memory:", config=config) as duck:
            yield duck
    except duckdb.OutOfMemoryException as error:
        # Trying again would not help: with this state, the payload is too much for this machine.
        reason = f"comparing the snapshot with the last state takes more than {memory_mib} MiB of memory or the disk"
        raise SnapshotRefusedError(Problem(Code.TOO_LARGE, reason)) from error


@dataclass(frozen=True, slots=True)
class Side:
    """Rows that can be read any number of times, with their number in a column `row`."""

    batches: Callable[[], Iterable[pa.Table]]
    schema: pa.Schema
    keys: Sequence[str]
    values: Sequence[str] = ()

    def reader(self) -> pa.RecordBatchReader:
        """The columns that are compared, as k0, k1, …, v0, v1, …, and the row's number."""
        return pa.RecordBatchReader.from_batches(self._forms(self.schema.empty_table(), 0).schema, self._parts())

    def _parts(self) -> Iterator[pa.RecordBatch]:
        start = 0
        for table in self.batches():
            yield from self._forms(aligned(table, self.schema), start).to_batches()
            start += table.num_rows

    def _forms(self, table: pa.Table, start: int) -> pa.Table:
        table = table.combine_chunks()
        columns = {f"k{number}": key_form(one_array(table[name])) for number, name in enumerate(self.keys)}
        columns |= {f"v{number}": value_form(one_array(table[name])) for number, name in enumerate(self.values)}
        columns["row"] = pa.array(np.arange(start, start + table.num_rows))
        return pa.table(columns)


def distinct_keys(duck: duckdb.DuckDBPyConnection, side: Side) -> int:
    """How many different keys rows have."""
    duck.register("side", side.reader())
    keys = _listed("k", len(side.keys))
    ((found,),) = duck.execute(f"select count(*) from (select distinct {keys} from side)").fetchall()  # noqa: S608
    return int(found)


def first_repeated(duck: duckdb.DuckDBPyConnection, side: Side) -> tuple[int, int, int]:
    """Two rows of one key, of which the second comes before any other such; and how many rows repeat a key."""
    duck.register("side", side.reader())
    keys = _listed("k", len(side.keys))
    ((rows, repeats),) = duck.execute(
        f"select min(row, 2) as rows, sum(count(*) - 1) over () from side group by {keys} "  # noqa: S608
        "having count(*) > 1 order by rows[2] limit 1"
    ).fetchall()
    return int(rows[0]), int(rows[1]), int(repeats)


def last_rows(duck: duckdb.DuckDBPyConnection, side: Side) -> Iterator[Places]:
    """Of each key the number of the last row, in no order. Rows with a null in the key belong to none."""
    duck.register("side", side.reader())
    numbers = range(len(side.keys))
    keys, present = _listed("k", len(side.keys)), " and ".join(f"k{number} is not null" for number in numbers)
    found = duck.sql(f"select max(row) as row from side where {present} group by {keys}")  # noqa: S608
    for batch in found.to_arrow_reader(_AT_ONCE):
        yield batch.column(0).to_numpy()


@dataclass(frozen=True, slots=True)
class Differences:
    """What has to happen to one side for it to become the other, in the order of keys."""

    only_new: int
    only_old: int
    changed: int
    pairs: Iterator[pa.RecordBatch]
    """The numbers of the rows, `new` and `old`; null where there is none."""


def differences(duck: duckdb.DuckDBPyConnection, new: Side, old: Side, *, optional: str | None = None) -> Differences:
    """Compare rows of the same key by their values; the column `optional` only where the new row has one."""
    duck.register("new", new.reader())
    duck.register("old", old.reader())
    numbers = range(len(new.keys))
    same_key = " and ".join(f"new.k{number} = old.k{number}" for number in numbers)
    keys = ", ".join(f"coalesce(new.k{number}, old.k{number}) as k{number}" for number in numbers)
    differs = ["new.row is null", "old.row is null"]
    for number, name in enumerate(new.values):
        distinct = f"new.v{number} is distinct from old.v{number}"
        differs.append(f"(new.v{number} is not null and {distinct})" if name == optional else distinct)
    # One after the other, as joining and sorting want much memory each.
    duck.execute("set preserve_insertion_order = false")
    duck.execute(
        f"create or replace temp table differing as select new.row as new, old.row as old, {keys} "  # noqa: S608
        f"from new full outer join old on {same_key} where {' or '.join(differs)}"
    )
    duck.execute("set preserve_insertion_order = true")
    duck.execute(
        f"create or replace temp table pairs as select new, old from differing order by {_listed('k', len(new.keys))}"  # noqa: S608
    )
    duck.execute("drop table differing")
    ((pairs, with_new, with_old),) = duck.execute("select count(*), count(new), count(old) from pairs").fetchall()
    return Differences(
        only_new=pairs - with_old,
        only_old=pairs - with_new,
        changed=with_new + with_old - pairs,
        pairs=iter(duck.sql("select new, old from pairs").to_arrow_reader(_AT_ONCE)),
    )


def _listed(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{number}" for number in range(count))
