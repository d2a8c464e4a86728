"""Polling for real: from a web server through poller, Kafka, Spark and committer into the chain, and by hand."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from odf_common.metadata.events import AddData, SetPollingSource
from odf_common.metadata.sources import (
    CompressionFormat,
    EventTimeSourceFromMetadata,
    FetchStepUrl,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    PrepStepDecompress,
    ReadStepCsv,
    ReadStepNdJson,
)
from odf_common.timestamp import Timestamp
from services.cli.__main__ import app
from tests.systems import (
    COMMITTER,
    INGEST,
    CrashPoints,
    IngestedDataset,
    RunningSystem,
    eventually,
    running_system,
    service,
)
from tests.unit.services.poller.conftest import WebServer, serving

pytestmark = pytest.mark.slow

POLLER = service("poller", "services.poller")
CRASH_POINTS = ["poller.before-send", "poller.after-send"]
DATES = ("Wed, 01 May 2024 12:00:00 GMT", "Thu, 02 May 2024 12:00:00 GMT", "Fri, 03 May 2024 12:00:00 GMT")


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> CrashPoints:
    return CrashPoints(POLLER, tmp_path_factory.mktemp("crashes"), CRASH_POINTS)


@pytest.fixture(scope="module")
def system(
    tmp_path_factory: pytest.TempPathFactory, module_kafka: str, crashes: CrashPoints
) -> Iterator[RunningSystem]:
    folder = tmp_path_factory.mktemp("system")
    services = [COMMITTER, INGEST, crashes.dying]
    with running_system(folder / "data", services, kafka=module_kafka, on_change=crashes.on_change) as system:
        yield system


def zipped(text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/cities.csv", text)
        archive.writestr("export/README.txt", "about")
    return out.getvalue()


def cities(system: RunningSystem, name: str, url: str, merge: MergeStrategy) -> IngestedDataset:
    columns = ("city STRING", "population BIGINT")
    return system.add(
        name,
        SetPollingSource(
            fetch=FetchStepUrl(url=url, event_time=EventTimeSourceFromMetadata()),
            prepare=(PrepStepDecompress(format=CompressionFormat.ZIP, sub_path="*.csv"),),
            read=ReadStepCsv(ddl_schema=columns, header=True),
            merge=merge,
        ),
    )


def pull(system: RunningSystem, dataset: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> dict[str, Any]:
    monkeypatch.setenv("ODF_KAFKA_BOOTSTRAP_SERVERS", system.servers)
    folder = str(system.settings.data_dir)
    done = CliRunner().invoke(app, ["pull", dataset, "--data-dir", folder, "-o", "json", *options])
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"exit": done.exit_code}


def changes(dataset: IngestedDataset) -> list[tuple[int, str, int, str]]:
    return [(row["op"], row["city"], row["population"], f"{row['event_time']:%m-%dT%H}") for row in dataset.rows()]


def test_a_snapshot_in_a_zip_file_polled_by_hand(
    system: RunningSystem, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = "city,population\nC,3000\nA,1000\nD,4000\nB,2000\n"
    url = web.give("/cities.zip", zipped(first), etag='"1"', last_modified=DATES[0])
    dataset = cities(system, "cities", url, MergeStrategySnapshot(primary_key=("city",)))
    polled = pull(system, "cities", monkeypatch)
    assert (polled["change"], polled["polls"][0]["rows"], polled["polls"][0]["deadLetters"]) == ("polled", 4, 0)
    assert pull(system, "cities", monkeypatch)["change"] == "up to date"
    assert web.asked[-1][1]["if-none-match"] == '"1"'
    changed = zipped("city,population\nC,3000\nB,4000\nD,5000\n")
    web.give("/cities.zip", changed, etag='"2"', last_modified=DATES[1])
    assert pull(system, "cities", monkeypatch)["polls"][0]["rows"] == 5
    assert changes(dataset) == [
        (0, "A", 1000, "05-01T12"),
        (0, "B", 2000, "05-01T12"),
        (0, "C", 3000, "05-01T12"),
        (0, "D", 4000, "05-01T12"),
        (1, "A", 1000, "05-01T12"),
        (2, "B", 2000, "05-01T12"),
        (3, "B", 4000, "05-02T12"),
        (2, "D", 4000, "05-01T12"),
        (3, "D", 5000, "05-02T12"),
    ]
    assert dataset.state.watermark == Timestamp.parse("2024-05-02T12:00:00Z")
    before = dataset.state.head
    web.give("/cities.zip", zipped(first)[:-30], last_modified=DATES[2])
    refused = pull(system, "cities", monkeypatch)
    assert (refused["exit"], refused["error"]) == (1, "Prepare")
    assert refused["message"].startswith(f"cities: Url {url}: the zip archive")
    web.give("/cities.zip", b"<!doctype html><p>Sorry", last_modified=DATES[2])
    assert "an HTML page, not data" in pull(system, "cities", monkeypatch)["message"]
    assert dataset.state.head == before
    dataset.verified()


def test_a_schedule_loses_and_doubles_nothing_whatever_dies(
    system: RunningSystem, web: WebServer, crashes: CrashPoints, tmp_path: Path
) -> None:
    rows = 60_000
    lines = "".join(f'{{"number":{number},"text":"{"x" * 20}"}}\n' for number in range(rows)).encode()
    url = web.give("/numbers", lines, etag='"1"')
    read = ReadStepNdJson(ddl_schema=("number BIGINT", "text STRING"))
    source = SetPollingSource(fetch=FetchStepUrl(url=url), read=read, merge=MergeStrategyAppend())
    dataset = system.add("numbers", source, poll_every_s=1.0)
    dataset.wait_for_rows(rows)
    eventually(lambda: crashes.is_over, lambda: f"{crashes.left} points were not met")
    web.give("/numbers", b'{"number":-1,"text":"later"}', etag='"2"')
    dataset.wait_for_rows(rows + 1)
    asked = len(web.asked)
    eventually(lambda: len(web.asked) >= asked + 2)  # polls go on, and find nothing new
    assert sorted(row["number"] for row in dataset.rows()) == list(range(-1, rows))
    assert len([event for event in dataset.events() if isinstance(event, AddData) and event.new_data]) >= 2
    uploads = system.settings.uploads_folder / dataset.dataset.entry.id.multibase
    assert len(list(uploads.glob("*"))) <= 1  # one of a poll that died before it was sent
    dataset.verified()
