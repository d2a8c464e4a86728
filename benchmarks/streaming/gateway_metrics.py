"""Reading the histograms that the gateway shows."""

from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families


def sums(gateway_url: str, name: str) -> dict[str, tuple[float, int]]:
    """Dataset (or "" where there is no such label) → sum and count of a histogram."""
    text = httpx.get(f"{gateway_url}/metrics").raise_for_status().text
    found: dict[str, tuple[float, int]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            dataset = sample.labels.get("dataset", "")
            total, count = found.get(dataset, (0.0, 0))
            if sample.name == f"{name}_sum":
                found[dataset] = total + sample.value, count
            elif sample.name == f"{name}_count":
                found[dataset] = total, count + int(sample.value)
    return found
