"""Commands run in a fresh data folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from services.cli.__main__ import app

CITY = """\
kind: DatasetSnapshot
version: 1
content:
  name: city
  kind: Root
  metadata:
  - kind: AddPushSource
    sourceName: sensors
    read:
      kind: NdJson
      schema:
      - event_time TIMESTAMP
      - city STRING
      - t DOUBLE
    merge:
      kind: Append
  - kind: SetInfo
    description: Temperatures
    keywords:
    - weather
"""
HOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: hot
  kind: Derivative
  metadata:
  - kind: SetTransform
    inputs:
    - datasetRef: city
    transform:
      kind: Sql
      engine: spark
      query: SELECT * FROM city
"""


@dataclass(frozen=True)
class Cli:
    """`odf` on a data folder."""

    folder: Path

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    def run(self, *arguments: str | Path, stdin: str | bytes | None = None) -> Result:
        options = ["--data-dir", str(self.data_dir)]
        return CliRunner().invoke(app, [*map(str, arguments), *options], input=stdin)

    def found(self, *arguments: str | Path, exit_code: int = 0, stdin: str | bytes | None = None) -> Any:
        result = self.run(*arguments, "-o", "json", stdin=stdin)
        assert result.exit_code == exit_code, result.output
        return json.loads(result.stdout)

    def text(self, *arguments: str | Path, exit_code: int = 0) -> str:
        result = self.run(*arguments)
        assert result.exit_code == exit_code, result.output
        return result.stdout if exit_code == 0 else result.stderr

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def add(self, text: str = CITY, *options: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.found("add", self.write("dataset.yaml", text), *options)["datasets"]
        return found
