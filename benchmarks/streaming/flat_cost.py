"""Whether a batch costs the same on a long chain as on a short one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import httpx

from benchmarks.streaming.events import event
from benchmarks.streaming.gateway_metrics import sums
from benchmarks.streaming.long_chains import add_dataset_with_blocks
from benchmarks.streaming.report import Report
from benchmarks.streaming.system import Ground, System, system
from odf_common.catalog.records import SourceSettings
from odf_common.identity.did import DatasetId
from odf_common.kafka.clients import producer

SHORT, LONG = 100, 20_000
ROUNDS = 100
WARM_UP = 30
PEER_S = 0.035
"""What kamu-cli takes for one event by its synchronous REST ingest on a short chain."""


def measure(ground: Ground) -> None:
    """Print ratios of the long chain to the short one."""
    report = Report("flat_cost")
    with system(ground, "flat_cost") as ours:
        fast = SourceSettings(batch_time_s=0)
        ids = {
            blocks: add_dataset_with_blocks(ours.settings, f"chain{blocks}", f"chain{blocks}", fast, blocks=blocks)
            for blocks in (SHORT, LONG)
        }
        with httpx.Client(base_url=ours.gateway_url, timeout=120) as client:
            posts = {blocks: _posting(client, blocks) for blocks in ids}
            for post in posts.values():
                post()  # waits until the job has noticed the dataset
            _medians(posts, WARM_UP)
            before = sums(ours.gateway_url, "odf_ingest_batch_seconds")
            published = _medians({blocks: _publishing(ours, blocks, each) for blocks, each in ids.items()}, ROUNDS)
            after = sums(ours.gateway_url, "odf_ingest_batch_seconds")
            posted = _medians(posts, ROUNDS)
    batch = {
        blocks: (after[name][0] - before[name][0]) / (after[name][1] - before[name][1])
        for blocks, name in ((blocks, f"chain{blocks}") for blocks in ids)
    }
    for name, found in (("publish → notification", published), ("staging a batch", batch), ("REST ingest", posted)):
        ratio = found[LONG] / found[SHORT]
        report.figure(f"{name}, {LONG} blocks : {SHORT}", ratio, "ratio", goal="<= 1.1", seconds=found[LONG])
    report.figure("REST ingest of one event, until committed", posted[SHORT], "s", goal=f"<= {PEER_S}")
    report.save()


def _medians(runs: Mapping[int, Callable[[], object]], rounds: int) -> dict[int, float]:
    """Median seconds of each, taken in turn."""
    taken: dict[int, list[float]] = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            began = time.perf_counter()
            run()
            taken[key].append(time.perf_counter() - began)
    return {key: statistics.median(values) for key, values in taken.items()}


def _posting(client: httpx.Client, blocks: int) -> Callable[[], object]:
    def post() -> None:
        headers = {"content-type": "application/x-ndjson"}
        answer = client.post(
            f"/chain{blocks}/ingest", params={"wait": "committed"}, content=event(0) + b"\n", headers=headers
        )
        if answer.status_code != httpx.codes.OK:
            raise SystemExit(f"ingest answered {answer.status_code}: {answer.text}")

    return post


def _publishing(ours: System, blocks: int, dataset_id: DatasetId) -> Callable[[], object]:
    sender = producer(ours.servers)
    heard = ours.notifications

    def publish() -> None:
        known = len(heard.of(dataset_id))
        sender.produce(f"chain{blocks}", event(0))
        sender.poll(0)
        heard.wait(lambda: len(heard.of(dataset_id)) > known, timeout_s=30, what=f"chain of {blocks} blocks")

    return publish
