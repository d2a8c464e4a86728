"""The reference implementation writes slices; we must find the logical hashes that it recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import types

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.data.slices import check_records
from odf_common.metadata.events import AddData
from odf_common.metadata.fragments import DataSlice
from odf_common.storage.dataset_folder import local_folder
from tests.conformance.peer import Workspace, needs_peer
from tests.unit.odf_common.data.tables import LEAVES, to_array

pytestmark = [pytest.mark.slow, needs_peer]

UTC_MS = pa.timestamp("ms", "UTC")
NOON = 1577880000000  # milliseconds
ROWS = 60
SOME_BATCHES = 25_000  # rows
MORE_THAN_A_ROW_GROUP = 1_080_000  # rows; the border, and a page of the second group, lie inside batches

KINDS = {
    str(kind): kind
    for kind in [*LEAVES, pa.list_(pa.int32()), pa.list_(pa.list_(pa.string())), pa.list_(pa.int32(), 2)]
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.create(tmp_path_factory.mktemp("peer") / "workspace")


def check_slices(workspace: Workspace, name: str, *, count: int = 1) -> None:
    """Check every slice of a dataset against what the peer's blocks promise."""
    slices = promised_slices(workspace.folder(name))
    assert len(slices) == count
    for path, promise in slices:
        check_records(path, promise, place=str(path))


def promised_slices(folder: Path) -> list[tuple[Path, DataSlice]]:
    dataset = local_folder(folder)
    events = [block.block.event for block in MetadataChain(dataset.objects, dataset.refs).blocks()]
    promises = [event.new_data for event in events if isinstance(event, AddData) and event.new_data is not None]
    return [(folder / "data" / str(promise.physical_hash), promise) for promise in promises]


def push_source(read: Mapping[str, Any], merge: str = "Append", **settings: Any) -> str:
    """An event in YAML, of which JSON is a part."""
    merge_strategy = {"kind": merge, **settings}
    return json.dumps({"kind": "AddPushSource", "sourceName": "default", "read": read, "merge": merge_strategy})


def ingest_columns(workspace: Workspace, name: str, columns: Mapping[str, pa.Array]) -> None:
    rows = len(next(iter(columns.values())))
    event_time = pa.array(NOON + np.arange(rows)).cast(UTC_MS)
    file = workspace.root / f"{name}.parquet"
    pq.write_table(pa.table({"event_time": event_time, **columns}), file, version="2.6")
    workspace.add(name, push_source({"kind": "Parquet"}))
    workspace.run("ingest", name, file)


def ingest_lines(workspace: Workspace, name: str, lines: list[dict[str, Any]]) -> None:
    file = workspace.root / f"{name}.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    workspace.run("ingest", name, file)


def column(kind: pa.DataType, rows: int, *, nullable: bool = True) -> pa.Array:
    """Small random values of a type, null in some rows."""
    random = np.random.default_rng(5)
    numbers = random.integers(1, 100, rows).tolist()
    nulls = random.random(rows) < (0.4 if nullable else 0)
    values = [None if null else value(kind, number) for number, null in zip(numbers, nulls, strict=True)]
    return to_array(values, kind)


def value(kind: pa.DataType, number: int) -> Any:
    if types.is_fixed_size_list(kind):
        return [number, None]
    if types.is_list(kind):
        return [value(kind.value_type, number), None][: number % 3]
    if types.is_date64(kind):
        return number * 86_400_000
    if types.is_boolean(kind):
        return number > 50
    if types.is_decimal(kind):
        return Decimal(number)
    if types.is_fixed_size_binary(kind):
        return bytes([number]) * kind.byte_width
    return str(number) if "string" in str(kind) else str(number).encode() if "binary" in str(kind) else number


def in_struct(member: pa.Array, *, nullable: bool = True) -> pa.Array:
    """The array as member `v` of a struct that is null in some rows."""
    mask = pa.array(np.random.default_rng(len(str(member.type))).random(len(member)) < 0.3)
    return pa.StructArray.from_arrays([member], fields=[pa.field("v", member.type, nullable)], mask=mask)


@pytest.mark.parametrize("name", KINDS)
def test_every_type_on_every_level_of_nulls(workspace: Workspace, name: str) -> None:
    kind = KINDS[name]
    holed, whole = column(kind, ROWS), column(kind, ROWS, nullable=False)
    # pyarrow cannot read required fixed-size lists, nor write required views, in structs that are null.
    may_be_null = types.is_fixed_size_list(kind) or "view" in name
    columns = {
        "flat": holed,
        "never_null": whole,
        "in_struct": in_struct(holed),
        "in_two_structs": in_struct(in_struct(holed)),
        "required_in_struct": in_struct(whole, nullable=may_be_null),
        "required_in_two": in_struct(in_struct(whole, nullable=may_be_null)),
        "struct_never_null": pa.StructArray.from_arrays([in_struct(holed)], ["v"]),
    }
    dataset = f"kind{list(KINDS).index(name)}"
    ingest_columns(workspace, dataset, columns)
    check_slices(workspace, dataset)


@pytest.mark.parametrize("rows", [SOME_BATCHES, MORE_THAN_A_ROW_GROUP])
def test_batches_and_row_groups_cut_where_the_peer_cuts_them(workspace: Workspace, rows: int) -> None:
    ingest_columns(
        workspace,
        f"rows{rows}",
        {
            "text": column(pa.string(), rows),
            "number": in_struct(column(pa.int64(), rows)),
            "flag": in_struct(in_struct(column(pa.bool_(), rows))),
        },
    )
    check_slices(workspace, f"rows{rows}")


def test_pages_that_end_inside_a_batch_make_no_difference(workspace: Workspace) -> None:
    wide = column(pa.binary(200), SOME_BATCHES)  # a page of the peer holds a mebibyte at most
    ingest_columns(workspace, "pages", {"wide": in_struct(wide)})
    check_slices(workspace, "pages")


def test_json_of_a_declared_schema_in_several_slices(workspace: Workspace) -> None:
    ddl = ["event_time TIMESTAMP", "city STRING", "population BIGINT", "area DOUBLE", "tags ARRAY<STRING>"]
    workspace.add("declared", push_source({"kind": "NdJson", "ddlSchema": ddl}))
    for batch in range(3):
        lines = [
            {
                "event_time": f"2020-01-0{batch + 1}T00:00:{number:02}Z",
                "city": None if number % 3 == 0 else f"Zürich {number}",
                "population": None if number % 4 == 0 else number,
                "area": number / 7,
                "tags": [None, "a", "ü"][: number % 4],
            }
            for number in range(50)
        ]
        ingest_lines(workspace, "declared", lines)
    check_slices(workspace, "declared", count=3)


def test_json_of_an_inferred_nested_schema(workspace: Workspace) -> None:
    lines = [
        {
            "event_time": f"2020-01-01T00:{number // 60:02}:{number % 60:02}Z",
            "place": {"name": "x" * (number % 3), "at": {"y": 1.5 if number % 2 else None}} if number % 5 else None,
            "maybe": {"n": None} if number % 3 == 0 else {"n": number},
        }
        for number in range(200)
    ]
    workspace.add("inferred", push_source({"kind": "NdJson"}))
    ingest_lines(workspace, "inferred", lines)
    check_slices(workspace, "inferred")


def test_retractions_and_corrections(workspace: Workspace) -> None:
    workspace.add("snapshot", push_source({"kind": "NdJson"}, merge="Snapshot", primaryKey=["city"]))
    for populations in ({"A": 1000, "B": 2000, "C": 3000}, {"B": 4000, "C": 3000, "D": 5000}):
        ingest_lines(workspace, "snapshot", [{"city": city, "population": n} for city, n in populations.items()])
    check_slices(workspace, "snapshot", count=2)
