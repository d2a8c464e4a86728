from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.services.cli.datasets import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in a fresh data folder, with nothing of the caller's environment."""
    for name in ("DATA_DIR", "KAFKA_BOOTSTRAP_SERVERS", "REPOSITORY", "CATALOG", "STAGING"):
        monkeypatch.delenv(f"ODF_{name}", raising=False)
    return Cli(tmp_path)
