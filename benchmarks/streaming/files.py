"""A file of all events into a running system, beside the reference implementation."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.streaming.events import COLUMNS, EVENTS
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground, System, system
from odf_common.catalog.records import SourceSettings

ROUNDS = 3
PEER = Path(os.environ.get("ODF_PEER_KAMU") or Path.home() / ".cache" / "odf-peers" / "kamu")

_MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        ddlSchema: [{schema}]
      merge:
        kind: Append
"""


def measure(ground: Ground) -> None:
    """Print seconds of whole commands, from their start to their end."""
    report = Report("files")
    file = ground.events_file
    with system(ground, "files") as ours:
        ours.add_dataset("files", "files", SourceSettings())
        _ingest(ours, file)  # warms up
        found = [_ingest(ours, file) for _ in range(ROUNDS)]
    seconds = statistics.median(found)
    report.figure(f"odf ingest of {EVENTS} events until committed", seconds, "s", goal="<= 3", size=file.stat().st_size)
    if not PEER.exists():
        report.note(f"kamu-cli was not found: put it at {PEER}, or name it in ODF_PEER_KAMU")
    else:
        peer = statistics.median([_peer(ground, file, number) for number in range(ROUNDS)])
        report.figure("kamu ingest of the same file", peer, "s", goal="-")
        report.figure("odf ingest : kamu ingest", seconds / peer, "ratio", goal="-")
    report.save()


def _ingest(ours: System, file: Path) -> float:
    folder = str(ours.settings.data_dir)
    environment = os.environ | {"ODF_KAFKA_BOOTSTRAP_SERVERS": ours.servers}
    began = time.perf_counter()
    command = [sys.executable, "-m", "services.cli", "ingest", "files", str(file), "--data-dir", folder, "-o", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"odf ingest failed: {done.stdout}{done.stderr}")
    return time.perf_counter() - began


def _peer(ground: Ground, file: Path, number: int) -> float:
    workspace = ground.folder / f"kamu-{number}"
    workspace.mkdir()
    manifest = workspace / "bench.yaml"
    schema = ", ".join(f'"{column}"' for column in COLUMNS)
    manifest.write_text(_MANIFEST.format(name="bench", schema=schema))
    _kamu(workspace, "init")
    _kamu(workspace, "add", manifest)
    began = time.perf_counter()
    _kamu(workspace, "ingest", "bench", file)
    return time.perf_counter() - began


def _kamu(workspace: Path, *arguments: str | Path) -> None:
    command = [str(PEER), "--no-color", *map(str, arguments)]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"kamu {arguments[0]} failed: {done.stdout}{done.stderr}")
