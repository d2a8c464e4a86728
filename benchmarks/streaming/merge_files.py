"""Files that are merged with what is known, into a running system, beside the reference implementation."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.streaming.files_data import KEYED_COLUMNS, write_keyed
from benchmarks.streaming.files_ingest import NO_PEER, PeerWorkspace, Taken, add_source, found_peer, odf_ingest
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground, system
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepNdJson,
)

ROWS = 1_000_000
ROUNDS = 3

_MIB = 1 << 20
_READ = ReadStepNdJson(ddl_schema=KEYED_COLUMNS)
_KEY = ("id",)


@dataclass(frozen=True, slots=True)
class _Case:
    dataset: str
    name: str
    merge: MergeStrategy
    changed: float

    @property
    def derived_and_new(self) -> int:
        """Rows that the second file makes: a pair for each change."""
        return 2 * round(ROWS * self.changed)


_CASES = (
    _Case("snapshot", f"a snapshot of {ROWS} rows, half of them changed", MergeStrategySnapshot(primary_key=_KEY), 0.5),
    _Case("upsert", f"an upsert of {ROWS} known keys", MergeStrategyUpsertStream(primary_key=_KEY), 1.0),
)


def measure(ground: Ground) -> None:
    """Print seconds and memory of the second file, for each strategy."""
    report = Report("merge_files")
    program = found_peer()
    if program is None:
        report.note(NO_PEER)
    first = write_keyed(ground.folder / "first.ndjson", ROWS, changed=0, revision=0)
    for case in _CASES:
        second = write_keyed(ground.folder / "second.ndjson", ROWS, changed=case.changed, revision=1)
        seconds = _ours(ground, report, case, first, second)
        if program is not None:
            _beside_peer(ground, report, case, first, second, program, seconds)
        second.unlink()
    first.unlink()
    report.save()


def _ours(ground: Ground, report: Report, case: _Case, first: Path, second: Path) -> float:
    with system(ground, case.dataset) as ours:
        add_source(ours, case.dataset, _READ, case.merge)
        odf_ingest(ours, case.dataset, first, rows=ROWS)
        # From the second file to the first the same rows change back.
        files = [second, first] * (ROUNDS // 2) + [second]
        found = [odf_ingest(ours, case.dataset, file, rows=case.derived_and_new) for file in files]
    return _tell(report, f"odf ingest of {case.name}", found)


def _beside_peer(
    ground: Ground, report: Report, case: _Case, first: Path, second: Path, program: Path, seconds: float
) -> None:
    known = PeerWorkspace.with_dataset(program, ground.folder / f"{case.dataset}-peer", _READ, case.merge)
    known.ingest(first)
    found: list[Taken] = []
    for number in range(ROUNDS):
        workspace = known.copy(ground.folder / f"{case.dataset}-peer-{number}")
        found.append(workspace.ingest(second))
        workspace.remove()
    known.remove()
    peer = _tell(report, f"kamu ingest of {case.name}", found)
    report.figure(f"odf ingest : kamu ingest, {case.name}", seconds / peer, "ratio", goal="< 1")


def _tell(report: Report, name: str, found: Sequence[Taken]) -> float:
    seconds = statistics.median(taken.seconds for taken in found)
    memory = {"command_mib": max(taken.memory for taken in found) / _MIB}
    if any(taken.job for taken in found):
        memory["job_mib"] = max(taken.job for taken in found) / _MIB
    report.figure(name, seconds, "s", goal="-", fastest=min(taken.seconds for taken in found), **memory)
    return seconds
