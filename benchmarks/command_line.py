"""How soon the command line answers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import medians, print_figure

BLOCK = """\
kind: MetadataBlock
version: 2
content:
  systemTime: 2020-01-01T12:00:00Z
  sequenceNumber: 0
  event:
    kind: Seed
    datasetId: did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6
    datasetKind: Root
"""

GOAL = "<= 0.4"
ROUNDS = 9


def odf(*arguments: str) -> Callable[[], object]:
    """A run of the command in a process of its own."""
    command = [sys.executable, "-m", "services.cli", *arguments]
    return lambda: subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Print seconds from start to end of whole processes."""
    with tempfile.TemporaryDirectory() as folder:
        text, binary = Path(folder, "block.yaml"), Path(folder, "block.bin")
        text.write_text(BLOCK)
        odf("block", "encode", str(text), "-o", str(binary))()
        runs = {
            "python -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            "odf --help": odf("--help"),
            "odf block hash FILE": odf("block", "hash", str(binary)),
            "odf block hash BLOCK.yaml": odf("block", "hash", str(text)),
        }
        bare, *times = medians(list(runs.values()), rounds=ROUNDS)
    for name, taken in zip(list(runs)[1:], times, strict=True):
        print_figure(name, taken, "s", goal=GOAL, bare_python=bare)


if __name__ == "__main__":
    main()
