"""Runs the example: the system, a web server, four datasets, two rounds of payloads, and what their logs say.

python -m examples.ingestion
python -m examples.ingestion --data-dir .odf-example     # keep what it makes
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from examples.ingestion.payloads import write_payloads
from odf_common.settings import Settings
from services.supervisor.supervisor import Supervisor

HERE = Path(__file__).parent
PORT = 8765
DATASETS = ("airports", "planes", "departures", "weather")

FIRST_DAY, SECOND_DAY = "2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z"

_CHANGING = re.compile(r"^( *\d+)  \S+  [0-9a-f]{8}|did:odf:[0-9a-f]+", re.MULTILINE)


def main() -> int:
    """Exit code 0 if all logs are as expected."""
    parser = argparse.ArgumentParser(prog="python -m examples.ingestion", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="keep the datasets here (default: a temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        return run(given.data_dir or Path(temporary) / "data", Path(temporary))


def run(data_dir: Path, folder: Path) -> int:
    """Publish everything, and compare the logs with the expected ones."""
    print("starting the system; this takes some seconds", flush=True)
    write_payloads(folder)
    (folder / "web").mkdir()
    with Supervisor(Settings(data_dir=data_dir), gateway_port=0) as system, web_server(folder / "web"):
        system.wait_ready()
        for dataset in DATASETS:
            odf(data_dir, "add", str(HERE / f"{dataset}.yaml"))
        for turn, event_time in (("1", FIRST_DAY), ("2", SECOND_DAY)):
            for dataset, ending in (("airports", "csv"), ("planes", "ndjson"), ("departures", "ndjson")):
                payload = str(folder / f"{dataset}-{turn}.{ending}")
                odf(data_dir, "ingest", f"nyc.{dataset}", payload, "--event-time", event_time)
            (folder / "web" / "weather.zip").write_bytes((folder / f"weather-{turn}.zip").read_bytes())
            odf(data_dir, "pull", "nyc.weather")
        odf(data_dir, "pull", "nyc.weather")  # nothing new: up to date
        logs = {dataset: odf(data_dir, "log", f"nyc.{dataset}") for dataset in DATASETS}
        odf(data_dir, "verify", *(f"nyc.{dataset}" for dataset in DATASETS))
    unexpected = [dataset for dataset, log in logs.items() if not is_expected(dataset, log)]
    return 1 if unexpected else 0


def odf(data_dir: Path, *arguments: str) -> str:
    """Run a command as a user would, and show it."""
    print(f"\n$ odf {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "services.cli", *arguments, "--data-dir", str(data_dir)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print((done.stdout + done.stderr).rstrip(), flush=True)
    if done.returncode != 0:
        raise SystemExit(f"`odf {arguments[0]}` failed")
    return done.stdout


def is_expected(dataset: str, log: str) -> bool:
    """Whether a log is the expected one, apart from hashes, identities and the time of day; prints the difference."""
    expected = (HERE / "expected" / f"{dataset}.log").read_text()
    found = without_hashes(log)
    if found == expected:
        return True
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), found.splitlines(True), "expected", "found"))
    return False


def without_hashes(log: str) -> str:
    """A log with `…` for what differs from run to run."""
    return _CHANGING.sub(lambda found: f"{found[1]}  …" if found[1] else "did:odf:…", log)


@contextmanager
def web_server(folder: Path) -> Iterator[None]:
    """Serves the folder on the port that weather.yaml names."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", PORT), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    sys.exit(main())
