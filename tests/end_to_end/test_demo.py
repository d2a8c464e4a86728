"""The demo as a newcomer runs it: started, watched, stopped by Ctrl-C, started again; beside it plain Kafka clients."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from odf_common.endpoints import Endpoints

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plain-kafka-clients.md").read_text()
EVENTS = 400
START_TIMEOUT_S = 180.0


def odf(data_dir: Path, *arguments: str, timeout_s: float = 60.0) -> str:
    command = [sys.executable, "-m", "services.cli", *arguments, "--data-dir", str(data_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout_s).stdout


def demo(data_dir: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "services.cli", "demo", "--port", "0", "--data-dir", str(data_dir), *options]


def wait_until(true: Callable[[], bool], what: str, timeout_s: float = START_TIMEOUT_S) -> None:
    give_up = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < give_up, what
        time.sleep(0.1)


def processes_of(data_dir: Path) -> list[str]:
    """The processes that were started for this folder, whoever their parent is."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("ODF_DATA_DIR") == str(data_dir) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_the_demo_runs_is_stopped_and_goes_on_where_it_was(tmp_path: Path) -> None:
    data_dir, errors, result = tmp_path / "odf", tmp_path / "stderr", tmp_path / "stdout"
    command = demo(data_dir, "--events", str(EVENTS), "-o", "json")
    with (
        errors.open("w") as stderr,
        result.open("w") as stdout,
        subprocess.Popen(command, stdout=stdout, stderr=stderr, start_new_session=True) as process,
    ):
        try:
            wait_until(lambda: "in blocks; Ctrl-C stops" in errors.read_text(), "the events are in blocks")
            plain_clients_publish_and_subscribe(data_dir, tmp_path)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, errors.read_text()
    assert processes_of(data_dir) == []
    first = check_figures(result.read_text(), published=EVENTS)
    assert set(first["heads"]) == {"nyc.flights", "nyc.weather", "city"}

    again = subprocess.run(
        demo(data_dir, "--events", "100", "--exit", "--rate", "0", "-o", "json"),
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    second = check_figures(again.stdout, published=100)
    assert second["heads"]["city"] == first["heads"]["city"]
    assert second["heads"]["nyc.flights"] != first["heads"]["nyc.flights"]
    # The earlier run's events are not sent again: the weather would be duplicates, the flights doubled.
    assert records_of(data_dir) == EVENTS + 100
    assert processes_of(data_dir) == []


def check_figures(stdout: str, *, published: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    assert found["published"] == found["committed"] == published
    assert (found["duplicates"], found["dead_letters"], found["verified"]) == (0, 0, True)
    assert found["notifications"] >= found["blocks"] >= 2
    assert 0 < found["latency_ms"]["p50"] <= found["latency_ms"]["p99"] <= found["seconds"] * 1000
    return found


def records_of(data_dir: Path) -> int:
    listed = json.loads(odf(data_dir, "verify", "nyc.flights", "nyc.weather", "-o", "json"))
    return sum(each["records"] for each in listed["datasets"])


def plain_clients_publish_and_subscribe(data_dir: Path, folder: Path) -> None:
    """The page's manifest and its Python examples, as they stand but for the address."""
    manifest = folder / "city.yaml"
    manifest.write_text("".join(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)))
    odf(data_dir, "add", str(manifest))
    wait_until(lambda: topic_exists(data_dir), "the job makes the topic of a new source")
    publish, subscribe = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    run_example(data_dir, publish)
    wait_until(lambda: city_rows(run_example(data_dir, subscribe)) == 2, "the two good records are in blocks")
    letters = odf(data_dir, "dead-letters", "list", "city")
    assert "mild" in letters
    if shutil.which("kcat"):
        kcat_publishes_and_subscribes(kafka_of(data_dir))


def city_rows(shown: str) -> int:
    """The sum over the lines that the subscriber prints: alias, number, kind, rows, hash."""
    return sum(int(line.split()[3]) for line in shown.splitlines() if line.startswith("city "))


def kcat_publishes_and_subscribes(kafka: str) -> None:
    assert "kcat -b 127.0.0.1:9092 -P -t odf.push.city.sensors" in PAGE
    event = b'{"event_time": "2026-02-01T12:00:00Z", "city": "Vancouver", "temperature": 12.0}\n'
    subprocess.run(["kcat", "-b", kafka, "-P", "-t", "odf.push.city.sensors"], input=event, check=True, timeout=60)
    command = ["kcat", "-b", kafka, "-C", "-t", "odf.blocks", "-o", "beginning", "-e", "-q", "-f", "%s\n"]

    def watermarks() -> list[str | None]:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        return [json.loads(line)["data"].get("watermark") for line in told.splitlines()]

    wait_until(lambda: "2026-02-01T12:00:00Z" in watermarks(), "kcat reads of the block with its event")


def kafka_of(data_dir: Path) -> str:
    return Endpoints.from_json((data_dir / "run" / "endpoints.json").read_bytes()).kafka_bootstrap_servers


def topic_exists(data_dir: Path) -> bool:
    datasets = json.loads(odf(data_dir, "status", "-o", "json"))["datasets"]
    (city,) = [each for each in datasets if each["alias"] == "city"]
    return city["sources"][0]["lagEvents"] is not None


def run_example(data_dir: Path, example: str) -> str:
    assert "127.0.0.1:9092" in example
    # The name of the group is anybody's; each call begins at the beginning.
    own = example.replace("127.0.0.1:9092", kafka_of(data_dir))
    own = own.replace("my-subscriber", f"my-subscriber-{time.monotonic_ns()}")
    command = [sys.executable, "-c", own]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=os.environ).stdout


def test_the_tour_of_the_core_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "examples.tour"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_ingestion_example_ends_with_the_expected_logs() -> None:
    command = [sys.executable, "-m", "examples.ingestion"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_TIMEOUT_S, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "up to date" in done.stdout
