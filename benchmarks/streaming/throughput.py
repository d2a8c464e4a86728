"""How many events a second become durable blocks, beside the peers and the limit."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.streaming.events import PARTITIONS
from benchmarks.streaming.gateway_metrics import sums
from benchmarks.streaming.memory_use import Peak
from benchmarks.streaming.peers import SparkPeer, delta_peer, parquet_peer, running
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import BACKLOG_EVENTS, Ground, module_command, system
from odf_common.catalog.records import SourceSettings

BATCH_ROWS = 250_000
WARM_UP = 3
"""Batches left out at the beginning, of everybody."""

Batches = Sequence[tuple[float, int]]
"""The end of each batch in seconds, and its records."""


def measure(ground: Ground) -> None:
    """Print rates and ratios."""
    report = Report("throughput")
    topic = ground.backlog
    ours, peak, steps = _ours(ground, topic)
    report.figure("ours", ours, "events/s", goal="-", batch_rows=BATCH_ROWS, **steps)
    report.figure("our largest memory, broker included", peak / 2**30, "GiB", goal="-")
    limit = steady_rate(_limit(ground, topic))
    report.figure("one Python process", limit, "events/s", goal="-")
    report.figure("ours : one Python process", ours / limit, "ratio", goal=">= 0.8")
    plain = steady_rate(_peer(ground, topic, parquet_peer()))
    report.figure("PySpark from_json → Parquet", plain, "events/s", goal="-")
    report.figure("ours : PySpark from_json → Parquet", ours / plain, "ratio", goal=">= 1.3")
    delta = steady_rate(_peer(ground, topic, delta_peer()))
    report.figure("PySpark → Delta Lake", delta, "events/s", goal="-")
    report.figure("ours : PySpark → Delta Lake", ours / delta, "ratio", goal="> 1")
    report.save()


def steady_rate(batches: Batches) -> float:
    """Records a second from the end of the warm-up to the end of the last batch."""
    warm, measured = batches[:WARM_UP], batches[WARM_UP:]
    return sum(records for _, records in measured) / (measured[-1][0] - warm[-1][0])


def _ours(ground: Ground, topic: str) -> tuple[float, int, dict[str, float]]:
    with system(ground, "throughput") as ours:
        pids = [state.pid for state in ours.supervisor.states() if state.pid] + [ground.broker.pid or 0]
        with Peak(pids) as peak:
            dataset_id = ours.add_dataset("bench", topic, SourceSettings(partitions=PARTITIONS, batch_rows=BATCH_ROWS))
            heard = ours.notifications.wait_for_records(dataset_id, BACKLOG_EVENTS)
        time.sleep(0.2)
        staging, batches = sums(ours.gateway_url, "odf_ingest_batch_seconds")["bench"]
        commits, moves = sums(ours.gateway_url, "odf_committer_commit_seconds").get("", (0.0, 0))
        found = [(each.time, each.block.source.records) for each in heard if each.block.source]
        steps = {"seconds_of_staging": staging / max(batches, 1), "seconds_of_commit": commits / max(moves, 1)}
        return steady_rate(found), peak.size, steps | {"batches": len(found)}


def _peer(ground: Ground, topic: str, peer: SparkPeer) -> Batches:
    task = {"servers": ground.servers, "topic": topic, "max_offsets": BATCH_ROWS, "records": BACKLOG_EVENTS}
    with running(peer, ground.folder / f"throughput-{peer.format}", task) as (_, told):
        return [(end, records) for end, records in told["batches"]]


def _limit(ground: Ground, topic: str) -> Batches:
    folder = Path(ground.folder, "limit")
    folder.mkdir()
    command = module_command(
        "limit", ground.servers, topic, str(PARTITIONS), str(BATCH_ROWS), str(BACKLOG_EVENTS), folder
    )
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [(end, records) for end, records in json.loads(done.stdout)["batches"]]
