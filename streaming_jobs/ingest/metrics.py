"""What the ingest job counts."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

_LABELS = ("dataset", "source")

MESSAGES = Counter("odf_ingest_messages", "Messages read from push topics.", _LABELS)
RECORDS = Counter("odf_ingest_records", "Records in them: rows, duplicates and dead letters together.", _LABELS)
ROWS = Counter("odf_ingest_rows", "Rows staged for a block.", _LABELS)
DUPLICATES = Counter("odf_ingest_duplicates", "Records left out as their key was known.", _LABELS)
DEAD_LETTERS = Counter("odf_ingest_dead_letters", "Records that could not be read.", _LABELS)
RESTARTS = Counter("odf_ingest_restarts", "Times a dataset's queries were started anew.", ("dataset",))
BATCH_SECONDS = Histogram(
    "odf_ingest_batch_seconds",
    "From the messages of a batch to its completion.",
    _LABELS,
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
