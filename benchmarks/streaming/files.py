"""Files of events into a running system, beside the reference implementation."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.streaming.events import COLUMNS, EVENTS
from benchmarks.streaming.files_data import write_csv, write_repeated
from benchmarks.streaming.files_ingest import NO_PEER, PeerWorkspace, Taken, add_source, found_peer, odf_ingest
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground, System, system
from odf_common.metadata.sources import MergeStrategyAppend, ReadStepCsv, ReadStepNdJson

ROUNDS = 3
LARGE = 10
"""How often the events stand in the large file."""

_MIB = 1 << 20
_NDJSON = ReadStepNdJson(ddl_schema=COLUMNS)
_CSV = ReadStepCsv(ddl_schema=COLUMNS, header=True)
_APPEND = MergeStrategyAppend()


def measure(ground: Ground) -> None:
    """Print seconds and memory of whole commands, from their start to their end."""
    report = Report("files")
    ndjson = ground.events_file
    csv = write_csv(ndjson, ground.folder / "events.csv")
    with system(ground, "files") as ours:
        add_source(ours, "ndjson", _NDJSON, _APPEND)
        add_source(ours, "csv", _CSV, _APPEND)
        for dataset, file in (("ndjson", ndjson), ("csv", csv)):
            odf_ingest(ours, dataset, file, rows=EVENTS)  # warms up
        lines: list[Taken] = []
        rows: list[Taken] = []
        for _ in range(ROUNDS):
            lines.append(odf_ingest(ours, "ndjson", ndjson, rows=EVENTS))
            rows.append(odf_ingest(ours, "csv", csv, rows=EVENTS))
        seconds = _tell(report, f"odf ingest of {EVENTS} NDJSON events", lines, goal="<= 2", file=ndjson)
        csv_seconds = _tell(report, f"odf ingest of {EVENTS} CSV events", rows, goal="-", file=csv)
        report.figure("CSV : NDJSON", csv_seconds / seconds, "ratio", goal="<= 1.5")
        _large(ground, ours, report, ndjson, seconds)
    csv.unlink()
    _beside_peer(ground, report, ndjson, seconds)
    report.save()


def _tell(report: Report, name: str, found: Sequence[Taken], *, goal: str, file: Path) -> float:
    seconds = statistics.median(taken.seconds for taken in found)
    report.figure(
        f"{name} until committed",
        seconds,
        "s",
        goal=goal,
        fastest=min(taken.seconds for taken in found),
        size=file.stat().st_size,
        command_mib=max(taken.memory for taken in found) / _MIB,
        job_mib=max(taken.job for taken in found) / _MIB,
    )
    return seconds


def _large(ground: Ground, ours: System, report: Report, ndjson: Path, seconds: float) -> None:
    file = write_repeated(ndjson, ground.folder / "large.ndjson", LARGE)
    size = file.stat().st_size
    taken = odf_ingest(ours, "ndjson", file, rows=LARGE * EVENTS)
    file.unlink()
    rate = size / taken.seconds / 1e6
    report.figure("a file ten times as large", rate, "MB/s", goal="-", seconds=taken.seconds, size=size)
    report.figure("its rate : that of the file", LARGE * seconds / taken.seconds, "ratio", goal=">= 1")
    report.figure("memory of odf ingest with it", taken.memory / _MIB, "MiB", goal="<= 512")
    report.figure("memory of the ingest job meanwhile", taken.job / _MIB, "MiB", goal="-")


def _beside_peer(ground: Ground, report: Report, file: Path, seconds: float) -> None:
    program = found_peer()
    if program is None:
        report.note(NO_PEER)
        return
    found: list[Taken] = []
    for number in range(ROUNDS):
        workspace = PeerWorkspace.with_dataset(program, ground.folder / f"files-peer-{number}", _NDJSON, _APPEND)
        found.append(workspace.ingest(file))
        workspace.remove()
    peer = statistics.median(taken.seconds for taken in found)
    memory = max(taken.memory for taken in found) / _MIB
    report.figure("kamu ingest of the NDJSON file", peer, "s", goal="-", command_mib=memory)
    report.figure("odf ingest : kamu ingest", seconds / peer, "ratio", goal="-")
