"""A steady publisher as a process of its own; keeps when it published each event, by partition and position."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.streaming.events import PARTITIONS, event
from odf_common.kafka.clients import producer

TICK_S = 0.01


def main() -> None:
    """Publish `rate` events a second for so long; a tick's events go to one partition, as a batch of a publisher's."""
    servers, topic, rate, duration, out = sys.argv[1:]
    sender = producer(servers)
    per_tick = round(int(rate) * TICK_S)
    times: list[list[float]] = [[] for _ in range(PARTITIONS)]
    began = time.time()
    for tick in range(round(float(duration) / TICK_S)):
        time.sleep(max(0.0, began + tick * TICK_S - time.time()))
        for number in range(tick * per_tick, (tick + 1) * per_tick):
            times[tick % PARTITIONS].append(time.time())
            sender.produce(topic, event(number), partition=tick % PARTITIONS)
        sender.poll(0)
    if sender.flush(60):
        raise SystemExit("not all events were published")
    np.savez(Path(out), *map(np.array, times))


if __name__ == "__main__":
    main()
