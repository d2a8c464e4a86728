"""Run all benchmarks, or those named, or parts of them: `python -m benchmarks chain streaming.latency`."""

from __future__ import annotations

import importlib
import sys

NAMES = ("logical_hash", "block_codec", "command_line", "chain", "read_steps", "committer", "streaming")


def main() -> None:
    """Run the named benchmarks, all without a name."""
    for name in sys.argv[1:] or NAMES:
        benchmark, _, part = name.partition(".")
        importlib.import_module(f"benchmarks.{benchmark}").main(*filter(None, [part]))


if __name__ == "__main__":
    main()
