"""The reference implementation (kamu-cli) as a program beside us."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PEER = os.environ.get("ODF_PEER_KAMU") or shutil.which("kamu")

needs_peer = pytest.mark.skipif(
    PEER is None, reason="the reference implementation was not found: put kamu on PATH or name it in ODF_PEER_KAMU"
)


@dataclass(frozen=True)
class Workspace:
    """A folder in which the peer keeps datasets."""

    root: Path

    @classmethod
    def create(cls, root: Path) -> Workspace:
        root.mkdir()
        workspace = cls(root)
        workspace.run("init")
        return workspace

    def run(self, *arguments: str | Path) -> str:
        """Run a command of the peer and return what it printed; AssertionError when it fails."""
        assert PEER is not None
        command = [PEER, "--no-color", *map(str, arguments)]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"
        return done.stdout

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows that the peer's SQL engine gives."""
        rows: list[dict[str, Any]] = json.loads(self.run("sql", "-o", "json", "-c", sql))
        return rows

    def add(self, name: str, *events: str) -> None:
        """Make a root dataset from events in YAML."""
        manifest = self.root / f"{name}.yaml"
        metadata = "".join(f"    - {event.strip()}\n" for event in events)
        manifest.write_text(
            f"kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {name}\n  kind: Root\n  metadata:\n{metadata}"
        )
        self.run("add", manifest)

    def folder(self, name: str) -> Path:
        """Where a dataset lies, in ODF layout."""
        folders = (self.root / ".kamu" / "datasets").iterdir()
        return next(folder for folder in folders if (folder / "info" / "alias").read_text() == name)
