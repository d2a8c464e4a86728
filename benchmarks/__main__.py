"""Run all benchmarks, or those named: `python -m benchmarks chain codec`."""

from __future__ import annotations

import importlib
import sys

NAMES = ("logical_hash", "block_codec", "command_line", "chain", "committer")


def main() -> None:
    """Run the named benchmarks, all without a name."""
    for name in sys.argv[1:] or NAMES:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
