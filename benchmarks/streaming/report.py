"""Figures on the terminal and, part by part, in a file."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.figures import print_figure

RESULTS = Path(__file__).parent.parent / "results" / "streaming.json"

_PACKAGES = ("pyspark", "pyarrow", "confluent-kafka", "rocksdict", "sqlalchemy")


class Report:
    """The figures of one part."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._figures: list[dict[str, Any]] = []

    def figure(self, name: str, value: float, unit: str, *, goal: str, **details: Any) -> None:
        """Print and keep a figure."""
        name = f"{self._part}: {name}"
        print_figure(name, value, unit, goal=goal, **details)
        line = {"figure": name, "value": value, "unit": unit, "goal": goal} | details
        self._figures.append({key: _rounded(item) for key, item in line.items()})

    def note(self, text: str) -> None:
        """Print and keep why something was not measured."""
        line = {"note": f"{self._part}: {text}"}
        print(json.dumps(line), flush=True)
        self._figures.append(line)

    def save(self) -> None:
        """Put this part's figures into the file in place of the earlier ones."""
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        found["machine"] = machine()
        found.setdefault("parts", {})[self._part] = self._figures
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """What it ran on."""
    import psutil

    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
    }


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
