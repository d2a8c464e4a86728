"""What the gateway counts, and everything that the processes of this installation count."""

from __future__ import annotations

import os

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

REQUESTS = Counter("odf_gateway_requests", "Requests answered.", ["route", "method", "status"])
REQUEST_SECONDS = Histogram(
    "odf_gateway_request_seconds",
    "From the request to the beginning of its answer.",
    ["route"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)
PUBLISHED_MESSAGES = Counter("odf_gateway_published_messages", "Messages that the broker confirmed.")
PUBLISHED_RECORDS = Counter("odf_gateway_published_records", "Records in confirmed messages.")
PUBLISHED_BYTES = Counter("odf_gateway_published_bytes", "Bytes in confirmed messages.")
NOTIFICATIONS = Counter("odf_gateway_notifications", "Notifications of new blocks that came from the topic.")
BAD_NOTIFICATIONS = Counter("odf_gateway_bad_notifications", "Messages among them that could not be read.")
SUBSCRIBERS = Gauge("odf_gateway_subscribers", "Open streams of server-sent events.", multiprocess_mode="livesum")
DROPPED_SUBSCRIBERS = Counter("odf_gateway_dropped_subscribers", "Streams ended because they lagged too far behind.")


def exposition() -> bytes:
    """All metrics in Prometheus' text format: of all processes where they share a folder, else of this one."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
