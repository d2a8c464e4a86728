"""How long it takes from publishing an event to the notification of the block that holds it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.streaming.events import PARTITIONS, fill_topic
from benchmarks.streaming.peers import delta_peer, running
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground, System, module_command, system
from odf_common.catalog.records import SourceSettings

RATES = (1_000, 5_000)
WARM_UP_S = 10
MEASURED_S = 30

Times = Sequence[npt.NDArray[np.float64]]
"""When the events of each partition were published, in the order of their positions."""
Visible = Iterable[tuple[float, Mapping[int, int]]]
"""From which moment on events before these positions are visible, oldest first."""

_FIRST = PARTITIONS  # events that make the source known before it counts, one in each partition


def measure(ground: Ground) -> None:
    """Print p50 and p99 of ours, as fast as it goes and with the default batch time, and of the peer."""
    report = Report("latency")
    default = SourceSettings().batch_time_s
    with system(ground, "latency") as ours:
        for rate in RATES:
            for batch_time, goals in ((0.0, ("<= 0.2", "<= 0.5")), (default, ("-", "-"))):
                name = f"{rate} events/s, " + (f"batch time {batch_time} s" if batch_time else "as fast as it goes")
                taken, blocks = _ours(ground, ours, rate, batch_time)
                _print(report, name, taken, goals, blocks_per_s=blocks)
    for rate in RATES:
        taken, versions = _delta(ground, rate)
        _print(report, f"{rate} events/s, PySpark → Delta Lake", taken, ("-", "-"), versions_per_s=versions)
    report.save()


def _print(report: Report, name: str, taken: npt.NDArray[np.float64], goals: tuple[str, str], **details: float) -> None:
    for percentile, goal in zip((50, 99), goals, strict=True):
        report.figure(f"{name}, p{percentile}", float(np.percentile(taken, percentile)), "s", goal=goal, **details)


def latencies(times: Times, base: int, visible: Visible) -> npt.NDArray[np.float64]:
    """Seconds of each event that was published after the warm-up; `base` is each partition's position at the start."""
    since = min(float(each[0]) for each in times) + WARM_UP_S
    covered = [0] * len(times)
    found = []
    for moment, positions in visible:
        for partition, published in enumerate(times):
            end = max(covered[partition], min(positions.get(partition, 0) - base, len(published)))
            some = published[covered[partition] : end]
            found.append(moment - some[some >= since])
            covered[partition] = end
    if left := sum(map(len, times)) - sum(covered):
        raise SystemExit(f"{left} events never became visible")
    return np.concatenate(found)


def _publish(ground: Ground, topic: str, rate: int) -> Times:
    out = ground.folder / f"{topic}.npz"
    subprocess.run(
        module_command("publisher", ground.servers, topic, str(rate), str(WARM_UP_S + MEASURED_S), out), check=True
    )
    with np.load(out) as arrays:
        return [arrays[name] for name in arrays.files]


def _ours(ground: Ground, ours: System, rate: int, batch_time: float) -> tuple[npt.NDArray[np.float64], float]:
    name = f"latency.{rate}.{round(batch_time * 1000)}"
    fill_topic(ground.servers, name, count=_FIRST, spread=1)
    settings = SourceSettings(partitions=PARTITIONS, batch_time_s=batch_time)
    dataset_id = ours.add_dataset(name, name, settings)
    ours.notifications.wait_for_records(dataset_id, _FIRST)
    times = _publish(ground, name, rate)
    heard = ours.notifications.wait_for_records(dataset_id, _FIRST + sum(map(len, times)))
    visible = [(each.time, each.block.source.next) for each in heard if each.block.source]
    blocks = sum(1 for moment, _ in visible if moment > visible[-1][0] - MEASURED_S) / MEASURED_S
    ours.remove_dataset(dataset_id)
    return latencies(times, 1, visible), blocks


def _delta(ground: Ground, rate: int) -> tuple[npt.NDArray[np.float64], float]:
    topic = f"latency.{rate}.delta"
    fill_topic(ground.servers, topic, count=_FIRST, spread=1)
    folder = ground.folder / topic
    task = {"servers": ground.servers, "topic": topic, "records": _FIRST, "until_told": True}
    with running(delta_peer(), folder, task):
        times = _publish(ground, topic, rate)
        wanted = 1 + max(map(len, times))
        visible = _await(folder, topic, wanted)
    versions = sum(1 for moment, _ in visible if moment > visible[-1][0] - MEASURED_S) / MEASURED_S
    return latencies(times, 1, visible), versions


def _await(folder: Path, topic: str, wanted: int) -> list[tuple[float, Mapping[int, int]]]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        visible = delta_versions(folder, topic)
        if visible and min(visible[-1][1].values()) >= wanted:
            return visible
        time.sleep(0.5)
    raise SystemExit("Delta Lake did not come to the end of the topic within 60 s")


def delta_versions(folder: Path, topic: str) -> list[tuple[float, Mapping[int, int]]]:
    """When each version of the table was committed, and which positions of the topic it covers."""
    found: list[tuple[float, Mapping[int, int]]] = []
    for path in sorted((folder / "out" / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        batch = next((action["txn"]["version"] for action in actions if "txn" in action), None)
        if batch is not None:
            offsets = json.loads((folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[-1])
            found.append((os.stat(path).st_mtime, {int(key): value for key, value in offsets[topic].items()}))
    return found
