"""From nothing to the first committed block, beside a bare Spark session with one query on the same topic."""

from __future__ import annotations

import shutil
import statistics
import time
from pathlib import Path

from benchmarks.streaming.events import fill_topic
from benchmarks.streaming.odf_up import odf_up
from benchmarks.streaming.peers import parquet_peer, running
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground, add_dataset
from odf_common.catalog.records import SourceSettings
from odf_common.identity.did import DatasetId
from odf_common.settings import Settings
from services.broker import EmbeddedBroker

EVENTS = 1_000
ROUNDS = 3
TOPIC = "cold"


def measure(ground: Ground) -> None:
    """Print seconds and ratios; jars are cached, and the topic is filled before."""
    report = Report("cold_start")
    prepared = ground.folder / "cold"
    dataset_id = add_dataset(Settings(data_dir=prepared), "bench", TOPIC, SourceSettings(partitions=4))
    with EmbeddedBroker(prepared / "broker") as broker:
        fill_topic(broker.bootstrap_servers, TOPIC, count=EVENTS)
    whole, joined, bare = [], [], []
    for number in range(ROUNDS):
        folder = Path(shutil.copytree(prepared, ground.folder / f"cold-{number}", symlinks=True))
        with EmbeddedBroker(folder / "broker") as broker:
            bare.append(_bare(broker.bootstrap_servers, ground.folder / f"bare-{number}"))
            joined.append(_ours(ground, prepared, dataset_id, f"joined-{number}", broker.bootstrap_servers))
        whole.append(_ours(ground, prepared, dataset_id, f"whole-{number}", None))
    all_s, joined_s, bare_s = map(statistics.median, (whole, joined, bare))
    report.figure("odf up, broker included, until the first block", all_s, "s", goal="-")
    report.figure("odf up on a running broker, until the first block", joined_s, "s", goal="-")
    report.figure("bare Spark on a running broker, until the first batch", bare_s, "s", goal="-")
    report.figure("odf up, broker included : bare Spark", all_s / bare_s, "ratio", goal="<= 2")
    report.figure("odf up on a running broker : bare Spark", joined_s / bare_s, "ratio", goal="<= 2")
    report.save()


def _ours(ground: Ground, prepared: Path, dataset_id: DatasetId, name: str, servers: str | None) -> float:
    folder = Path(shutil.copytree(prepared, ground.folder / name, symlinks=True))
    began = time.monotonic()
    with odf_up(Settings(data_dir=folder, kafka_bootstrap_servers=servers)) as up:
        up.wait_for_data(dataset_id)
        return time.monotonic() - began


def _bare(servers: str, folder: Path) -> float:
    began = time.time()
    task = {"servers": servers, "topic": TOPIC, "records": EVENTS}
    with running(parquet_peer(), folder, task) as (_, told):
        return float(told["batches"][-1][0]) - began
