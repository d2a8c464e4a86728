"""Run all parts, or those named: `python -m benchmarks.streaming throughput latency`."""

from __future__ import annotations

import sys

from benchmarks.streaming.run import run

if __name__ == "__main__":
    run(sys.argv[1:])
