"""Commands that take a file: ours into a running system, and the reference implementation's beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.streaming import files_child
from benchmarks.streaming.memory_use import Peak, total
from benchmarks.streaming.system import System, opened
from odf_common.catalog.records import SourceSettings
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import AddPushSource, DatasetKind
from odf_common.metadata.manifests import DatasetSnapshot
from odf_common.metadata.sources import MergeStrategy, ReadStep
from odf_common.repository.snapshots import create_from_snapshot
from odf_common.timestamp import Timestamp

_CACHED = Path.home() / ".cache" / "odf-peers" / "kamu"
_JOB = "ingest"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a whole command took, from its start to its end; for ours, `job` is what the ingest job had meanwhile."""

    seconds: float
    memory: int  # bytes
    job: int = 0


def found_peer() -> Path | None:
    """The reference implementation's program, where there is one."""
    named = os.environ.get("ODF_PEER_KAMU") or shutil.which("kamu")
    found = Path(named) if named else _CACHED
    return found if found.exists() else None


NO_PEER = f"kamu-cli was not found: put kamu on PATH or at {_CACHED}, or name it in ODF_PEER_KAMU"


def add_source(ours: System, name: str, read: ReadStep, merge: MergeStrategy) -> None:
    """A dataset with one push source; the running job notices it."""
    source = AddPushSource(source_name="default", read=read, merge=merge)
    snapshot = DatasetSnapshot(name=DatasetAlias.parse(name), kind=DatasetKind.ROOT, metadata=(source,))
    with opened(ours.settings) as repository:
        create_from_snapshot(
            repository,
            snapshot,
            system_time=Timestamp.now(),
            key_pair=KeyPair.generate(),
            settings=SourceSettings(),
            topic=name,
        )


def odf_ingest(ours: System, dataset: str, file: Path, *, rows: int | None = None) -> Taken:
    """`odf ingest` until everything is committed; of so many rows, if it is said."""
    pids = [state.pid for state in ours.supervisor.states() if state.pid and _JOB in state.name]
    command = [sys.executable, "-m", "services.cli", "ingest", dataset, str(file)]
    command += ["--data-dir", str(ours.settings.data_dir), "--timeout", "180", "-o", "json"]
    with Peak(pids) as peak:
        taken, said = _run(command, environment={"ODF_KAFKA_BOOTSTRAP_SERVERS": ours.servers})
    receipt = json.loads(said)
    if receipt["deadLetters"] or (rows is not None and receipt["rows"] != rows):
        raise SystemExit(f"odf ingest of {file}: {receipt['rows']} rows, {receipt['deadLetters']} dead letters")
    return Taken(taken.seconds, taken.memory, max(peak.size, total(pids)))


@dataclass(frozen=True, slots=True)
class PeerWorkspace:
    """A folder in which the reference implementation keeps one dataset, `bench`."""

    program: Path
    folder: Path

    @classmethod
    def with_dataset(cls, program: Path, folder: Path, read: ReadStep, merge: MergeStrategy) -> PeerWorkspace:
        """A workspace whose dataset has this push source."""
        folder.mkdir()
        workspace = cls(program, folder)
        workspace._kamu("init")
        source = {
            "kind": "AddPushSource",
            "sourceName": "default",
            "read": _peer_document(read),
            "merge": merge.to_document(),
        }
        content = {"name": "bench", "kind": "Root", "metadata": [source]}
        manifest = folder / "bench.yaml"  # JSON is YAML
        manifest.write_text(json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": content}))
        workspace._kamu("add", manifest)
        return workspace

    def ingest(self, file: Path) -> Taken:
        """`kamu ingest` of a file."""
        return self._kamu("ingest", "bench", file)

    def copy(self, folder: Path) -> PeerWorkspace:
        """The same workspace as it is now, at another place."""
        shutil.copytree(self.folder, folder)
        return PeerWorkspace(self.program, folder)

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.folder)

    def _kamu(self, *arguments: str | Path) -> Taken:
        return _run([str(self.program), "--no-color", *map(str, arguments)], cwd=self.folder)[0]


def _peer_document(read: ReadStep) -> dict[str, object]:
    """The read schema has another name there."""
    document = dict(read.to_document())
    if "schema" in document:
        document["ddlSchema"] = document.pop("schema")
    return document


def _run(
    command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Taken, str]:
    """Run a command; what it took, and what it said on stdout."""
    measured = [sys.executable, "-I", "-S", str(files_child.__file__), *command]
    done = subprocess.run(
        measured, cwd=cwd, env=os.environ | (environment or {}), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    said, _, figures = done.stdout.rstrip().rpartition("\n")
    return Taken(**json.loads(figures)), said
