"""How much memory a system takes that has nothing to do."""

from __future__ import annotations

import time

from benchmarks.streaming.events import event
from benchmarks.streaming.memory_use import families
from benchmarks.streaming.odf_up import odf_up
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground, add_dataset
from odf_common.catalog.records import SourceSettings
from odf_common.endpoints import running_endpoints
from odf_common.kafka.clients import producer
from odf_common.settings import Settings

SETTLE_S = 15


def measure(ground: Ground) -> None:
    """Print the memory of each process of `odf up` with one dataset that got a few events, and the sum."""
    report = Report("idle_memory")
    settings = Settings(data_dir=ground.folder / "idle")
    dataset_id = add_dataset(settings, "bench", "bench", SourceSettings())
    with odf_up(settings) as up:
        up.wait_ready()
        sender = producer(running_endpoints(settings).kafka_bootstrap_servers)
        for number in range(100):
            sender.produce("bench", event(number))
        sender.flush(30)
        up.wait_for_data(dataset_id)
        time.sleep(SETTLE_S)
        found = families([up.pid])
    for name, size in sorted(found.items(), key=lambda item: -item[1]):
        report.figure(name.partition(" ")[2], size / 2**20, "MiB", goal="-")
    report.figure("all", sum(found.values()) / 2**30, "GiB", goal="<= 1.8")
    report.save()
