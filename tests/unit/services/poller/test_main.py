from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow


@contextmanager
def a_poller(folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "services.poller", "--data-dir", folder, "--bootstrap-servers", "127.0.0.1:1"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_it_serves_without_a_broker_and_stops_when_told(tmp_path: Path) -> None:
    with a_poller(tmp_path) as first:
        assert first.stdout is not None
        assert json.loads(first.stdout.readline()) == {"ready": True}
        assert psutil.Process(first.pid).memory_info().rss < 150 << 20
        with a_poller(tmp_path) as second:
            out, problems = second.communicate(timeout=60)
            assert (second.returncode, out) == (3, b"")
            assert b"another poller works" in problems
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 0


def test_settings_that_are_not_right_are_told(tmp_path: Path) -> None:
    with a_poller(tmp_path, ODF_POLLER_MAX_SIZE="much") as process:
        _, problems = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"max_size" in problems
