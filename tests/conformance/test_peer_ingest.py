"""The reference implementation makes the same rows of the same input."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.peer import PEER, Workspace, needs_peer
from tests.ingest_cases import CASES, Case, Push, rows_of

pytestmark = [pytest.mark.slow, needs_peer]

_FORMATS = {"text/csv": "csv", "application/json": "json"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z?")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.create(tmp_path_factory.mktemp("peer") / "workspace")


def peer_metadata(case: Case) -> list[str]:
    """The events in the peer's newer spelling."""
    return [json.dumps(event).replace('"schema":', '"ddlSchema":') for event in case.metadata]


def ingest(workspace: Workspace, dataset: str, push: Push, file: Path) -> None:
    assert PEER is not None
    file.write_bytes(push.data)
    form = [] if push.media_type is None else ["--input-format", _FORMATS[push.media_type]]
    command = [PEER, "--no-color", "ingest", dataset, str(file), "--event-time", push.event_time, *form]
    done = subprocess.run(command, cwd=workspace.root, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode != 0) == bool(push.dead_letters), done.stdout + done.stderr


def value_of(value: Any) -> Any:
    if isinstance(value, str) and _TIME.fullmatch(value):
        return datetime.fromisoformat(value)
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return value


@pytest.mark.parametrize("case", [case for case in CASES if case.peer], ids=lambda case: case.name)
def test_the_rows_are_those_of_the_peer(case: Case, workspace: Workspace, tmp_path: Path) -> None:
    dataset = f"case.n{CASES.index(case)}"
    workspace.add(dataset, *peer_metadata(case))
    for number, push in enumerate(case.pushes):
        ingest(workspace, dataset, push, tmp_path / f"{number}.data")
    offset = case.system_names[0]
    found = workspace.query(f'select * from "{dataset}" order by "{offset}"')
    rows = [{name: value_of(value) for name, value in row.items()} for row in found]
    assert rows_of(case, rows) == [tuple(row) for row in case.rows]
