"""How figures are taken and printed."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any


def print_figure(name: str, value: float, unit: str, *, goal: str, **details: Any) -> None:
    """Print one JSON line. `goal` says what the value should be, such as `>= 5000` or `<= 1.2`."""
    line = {"figure": name, "value": _rounded(value), "unit": unit, "goal": goal}
    print(json.dumps(line | {key: _rounded(item) for key, item in details.items()}), flush=True)


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def seconds(run: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def medians(runs: Sequence[Callable[[], object]], *, rounds: int) -> list[float]:
    """Median seconds of each, taken in turn so that a drift of the machine's speed hits all alike; one warm-up."""
    for run in runs:
        run()
    taken = [[seconds(run) for run in runs] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]
