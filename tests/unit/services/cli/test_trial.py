from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from odf_common.messages.payload import MAX_INLINE_SIZE
from services.cli.__main__ import app
from tests.unit.services.cli.test_sources import POLLED

FIRST, SECOND = "2000-01-01T12:00:00Z", "2000-01-02T12:00:00Z"
CITIES = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
  - kind: AddPushSource
    sourceName: default
    read:
      kind: Csv
      header: true
      schema: [city STRING, population BIGINT]
    merge:
      kind: Snapshot
      primaryKey: [city]
"""
MONDAY = b"city,population\nC,3000\nA,1000\nD,4000\nB,2000\n"
TUESDAY = b"city,population\nC,3000\nB,4000\nD,5000\n"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["try", *map(str, arguments)])


def rows(*arguments: str | Path, exit_code: int = 0) -> list[dict[str, Any]]:
    result = run(*arguments, "-o", "json")
    assert result.exit_code == exit_code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def write(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write(tmp_path, "cities.yaml", CITIES)


@pytest.fixture
def days(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path, "monday.csv", MONDAY), write(tmp_path, "tuesday.csv", TUESDAY)


TIMES = ("--event-time", FIRST, "--event-time", SECOND)


def test_the_worked_example_of_snapshots(manifest: Path, days: tuple[Path, Path]) -> None:
    found = rows(manifest, *days, *TIMES, "--system-time", "2001-01-01T00:00:00Z")
    assert [list(row.values()) for row in found] == [
        [offset, op, "2001-01-01T00:00:00Z", event_time, city, population]
        for offset, op, event_time, city, population in [
            (0, 0, FIRST, "A", 1000),
            (1, 0, FIRST, "B", 2000),
            (2, 0, FIRST, "C", 3000),
            (3, 0, FIRST, "D", 4000),
            (4, 1, FIRST, "A", 1000),
            (5, 2, FIRST, "B", 2000),
            (6, 3, SECOND, "B", 4000),
            (7, 2, FIRST, "D", 4000),
            (8, 3, SECOND, "D", 5000),
        ]
    ]
    assert list(found[0]) == ["offset", "op", "system_time", "event_time", "city", "population"]


def test_people_see_schema_operations_and_counts(manifest: Path, days: tuple[Path, Path]) -> None:
    shown = run(manifest, *days, *TIMES).stdout
    assert shown.startswith("schema\n  offset BIGINT NOT NULL\n")
    assert f"3 records, 5 rows, 3 derived, 1 duplicates, 0 dead letters, watermark {SECOND}" in shown
    assert [line.split()[1] for line in shown.splitlines()[-5:]] == ["-R", "-C", "+C", "-C", "+C"]
    limited = run(manifest, *days, *TIMES, "--limit", "2").stdout
    assert limited.splitlines()[-1] == "… 3 more rows (--limit)"


def test_a_refused_snapshot_leaves_what_was_before(manifest: Path, days: tuple[Path, Path], tmp_path: Path) -> None:
    twice = write(tmp_path, "twice.csv", b"city,population\nA,1\nA,2\n")
    result = run(manifest, days[0], twice, days[1], "-o", "json")
    assert result.exit_code == 1
    (letter,) = map(json.loads, result.stderr.splitlines())
    assert (letter["file"], letter["code"], letter["record"]) == (str(twice), "DuplicateKeysInSnapshot", None)
    assert len(result.stdout.splitlines()) == 9
    assert "refused: all of it: DuplicateKeysInSnapshot" in run(manifest, twice).stdout


def test_bad_records_are_told_by_their_place_in_the_file(tmp_path: Path) -> None:
    manifest = write(tmp_path, "cities.yaml", CITIES.replace("kind: Snapshot", "kind: Ledger"))
    data = b"city,population\n" + b"".join(b"%040d,1\n" % number for number in range(20_000)) + b"x,many\n"
    result = run(manifest, write(tmp_path, "many.csv", data), "-o", "json")
    (letter,) = map(json.loads, result.stderr.splitlines())
    assert (letter["code"], letter["record"], letter["value"]) == ("WrongType", 20_001, "x,many")
    assert len(result.stdout.splitlines()) == 20_000


def test_a_large_file_gives_the_same_rows(manifest: Path, tmp_path: Path) -> None:
    lines = [b"%060d,%d\n" % (number, number) for number in range(20_000)]
    small = write(tmp_path, "small.csv", b"city,population\n" + b"".join(lines[:1000]))
    large = write(tmp_path, "large.csv", b"city,population\n" + b"".join(lines))
    assert large.stat().st_size > MAX_INLINE_SIZE
    found = rows(manifest, small, large)
    assert [row["offset"] for row in found] == list(range(20_000))
    assert [row["population"] for row in found] == list(range(20_000))


def test_a_file_of_another_format_is_read_by_its_name_or_as_told(manifest: Path, tmp_path: Path) -> None:
    record = json.dumps({"population": 1, "city": "A"})
    for path, options in (
        (write(tmp_path, "a.ndjson", record), ()),
        (write(tmp_path, "a.txt", record), ("--media-type", "application/x-ndjson")),
    ):
        (row,) = rows(manifest, path, *options)
        assert (row["city"], row["population"]) == ("A", 1)


@pytest.mark.parametrize("packing", ["Gzip", "Zip", None])
def test_a_file_stands_for_what_was_fetched(tmp_path: Path, packing: str | None) -> None:
    prepare = f"    prepare:\n    - kind: Decompress\n      format: {packing}\n    read:"
    manifest = write(tmp_path, "polled.yaml", POLLED.replace("    read:", prepare) if packing else POLLED)
    data = b"city\nA\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("cities.csv", data)
    packed = {"Gzip": gzip.compress(data), "Zip": archive.getvalue(), None: data}[packing]
    for content in (packed, data):
        assert [row["city"] for row in rows(manifest, write(tmp_path, "fetched", content))] == ["A"]


def test_system_columns_have_the_names_of_the_vocabulary(tmp_path: Path, days: tuple[Path, Path]) -> None:
    names = (
        "  - {kind: SetVocab, offsetColumn: n, operationTypeColumn: what, systemTimeColumn: at, eventTimeColumn: when}"
    )
    manifest = write(tmp_path, "cities.yaml", CITIES.replace("  metadata:", f"  metadata:\n{names}"))
    assert list(rows(manifest, days[0])[0]) == ["n", "what", "at", "when", "city", "population"]
    assert "+A" in run(manifest, days[0]).stdout


def test_times_are_given_once_or_for_each_file(manifest: Path, days: tuple[Path, Path]) -> None:
    assert run(manifest, *days, "--event-time", FIRST).exit_code == 0
    wrong = run(manifest, days[0], *TIMES)
    assert (wrong.exit_code, "--event-time" in wrong.stderr) == (2, True)


def test_one_of_several_sources_is_named(tmp_path: Path, days: tuple[Path, Path]) -> None:
    head, source = CITIES.split("  metadata:\n")
    second = source.replace("sourceName: default", "sourceName: more").replace("kind: Snapshot", "kind: Ledger")
    manifest = write(tmp_path, "cities.yaml", f"{head}  metadata:\n{source}{second}")
    assert "--source: default, more" in run(manifest, days[0]).stderr
    assert len(rows(manifest, *days, "--source", "more")) == 4
    assert "no source 'other'" in run(manifest, days[0], "--source", "other").stderr


def test_a_source_that_cannot_run_is_refused(tmp_path: Path, days: tuple[Path, Path]) -> None:
    manifest = write(tmp_path, "cities.yaml", CITIES.replace("[city]", "[town]"))
    result = run(manifest, days[0])
    assert result.exit_code == 1
    assert "push source 'default': the primary key has the column 'town'" in result.stderr


def test_with_json_stdout_is_for_rows_alone(tmp_path: Path, days: tuple[Path, Path]) -> None:
    manifest = write(tmp_path, "cities.yaml", CITIES.replace("[city]", "[town]"))
    result = run(manifest, days[0], "-o", "json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert json.loads(result.stderr)["error"] == "BadInputSchema"


def test_a_damaged_archive_is_refused_and_the_next_file_goes_on(tmp_path: Path) -> None:
    manifest = write(
        tmp_path,
        "polled.yaml",
        POLLED.replace("    read:", "    prepare:\n    - {kind: Decompress, format: Gzip}\n    read:"),
    )
    packed = gzip.compress(b"city\nA\n")
    cut, whole = write(tmp_path, "cut.gz", packed[:-9]), write(tmp_path, "whole.gz", packed)
    result = run(manifest, cut, whole, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["city"]) == (1, "A")
    (letter,) = map(json.loads, result.stderr.splitlines())
    assert (letter["file"], "ends in the middle" in letter["reason"]) == (str(cut), True)


@pytest.mark.slow
def test_queries_run_in_spark(tmp_path: Path) -> None:
    query = (
        "    preprocess:\n      kind: Sql\n      engine: spark\n      query: SELECT upper(city) AS city FROM input\n"
    )
    manifest = write(tmp_path, "cities.yaml", CITIES.replace("    merge:", f"{query}    merge:"))
    file = write(tmp_path, "cities.csv", b"city,population\na,1\nb,2\n")
    command = [sys.executable, "-m", "services.cli", "try", str(manifest), str(file), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["city"] for line in done.stdout.splitlines()] == ["A", "B"]


def test_each_row_is_one_line_for_any_reader_of_lines(tmp_path: Path, manifest: Path) -> None:
    odd = "a\u2028b\u2029c\x85d"
    (row,) = rows(manifest, write(tmp_path, "odd.csv", f"city,population\n{odd},1\n"))
    assert row["city"] == odd


def test_files_that_are_not_there_are_told_beside_the_rows(tmp_path: Path, manifest: Path) -> None:
    monday = write(tmp_path, "monday.csv", MONDAY)
    for arguments, count in ((("no.yaml", monday), 0), ((manifest, monday, "no.csv"), 4)):
        result = run(*arguments, "-o", "json")
        assert (result.exit_code, len(result.stdout.splitlines())) == (1, count)
        assert json.loads(result.stderr)["message"].endswith("No such file or directory")
