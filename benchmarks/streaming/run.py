"""The parts, one after the other on one broker."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Sequence

from benchmarks.streaming.report import machine
from benchmarks.streaming.system import Ground

PARTS = (
    "throughput",
    "latency",
    "flat_cost",
    "ledger",
    "upsert",
    "snapshot_merge",
    "rebuild",
    "idle_memory",
    "files",
    "merge_files",
    "cold_start",
)


def run(parts: Sequence[str] = ()) -> None:
    """Run the named parts, all without a name."""
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print(json.dumps({"machine": machine()}), flush=True)
    with Ground() as ground:
        for part in parts or PARTS:
            began = time.monotonic()
            importlib.import_module(f"benchmarks.streaming.{part}").measure(ground)
            print(json.dumps({"part": part, "seconds": round(time.monotonic() - began)}), flush=True)
