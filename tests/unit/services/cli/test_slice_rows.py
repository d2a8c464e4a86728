from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.storage.dataset_folder import DatasetFolder, local_folder
from odf_common.storage.layout import ObjectKind
from services.cli.slice_rows import last_rows, plain_rows, rows_from


@pytest.fixture
def folder(tmp_path: Path) -> DatasetFolder:
    return local_folder(tmp_path / "dataset")


@pytest.fixture
def numbers(folder: DatasetFolder, tmp_path: Path) -> Multihash:
    """A slice of ten rows in four row groups."""
    path = tmp_path / "slice.parquet"
    pq.write_table(pa.table({"offset": list(range(10))}), path, row_group_size=3)
    found = sha3_256(path.read_bytes())
    folder.objects.put_file(ObjectKind.DATA, found, path)
    return found


@pytest.mark.parametrize("count", [1, 3, 4, 10, 99])
def test_the_last_rows_of_a_slice(folder: DatasetFolder, numbers: Multihash, count: int) -> None:
    rows = last_rows(folder.objects, numbers, count)
    assert [row["offset"] for row in rows] == list(range(10))[-count:]


@pytest.mark.parametrize("start", [0, 4, 10])
def test_the_rows_from_a_place_on(folder: DatasetFolder, numbers: Multihash, start: int) -> None:
    assert [row["offset"] for row in rows_from(folder.objects, numbers, start)] == list(range(start, 10))


def test_every_value_becomes_one_that_json_knows() -> None:
    moment = datetime(2024, 1, 31, 12, tzinfo=UTC)
    columns = {
        "utc": pa.array([moment], pa.timestamp("ms", "UTC")),
        "fine": pa.array([1], pa.timestamp("ns", "UTC")),
        "day": pa.array([date(2024, 1, 31)]),
        "price": pa.array([Decimal("1.50")]),
        "bytes": pa.array([b"\x00\xff"]),
        "nan": pa.array([float("nan")]),
        "list": pa.array([[{"a": moment}]], pa.list_(pa.struct([("a", pa.timestamp("ms", "UTC"))]))),
        "nothing": pa.array([None], pa.string()),
    }
    (row,) = plain_rows(pa.record_batch(columns))
    assert json.loads(json.dumps(row, allow_nan=False)) == {
        "utc": "2024-01-31T12:00:00Z",
        "fine": "1970-01-01T00:00:00Z",
        "day": "2024-01-31",
        "price": "1.50",
        "bytes": "00ff",
        "nan": "nan",
        "list": [{"a": "2024-01-31T12:00:00Z"}],
        "nothing": None,
    }
