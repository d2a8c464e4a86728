"""What the ingest job counts."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_LABELS = ("dataset", "source")

MESSAGES = Counter("odf_ingest_messages", "Messages read from the topics of sources.", _LABELS)
RECORDS = Counter("odf_ingest_records", "Records in them: rows, duplicates and dead letters together.", _LABELS)
ROWS = Counter("odf_ingest_rows", "Rows staged for a block.", _LABELS)
DERIVED = Counter("odf_ingest_derived", "Rows among them that no record stands for: what is taken back.", _LABELS)
DUPLICATES = Counter("odf_ingest_duplicates", "Records left out as they say nothing new.", _LABELS)
DEAD_LETTERS = Counter("odf_ingest_dead_letters", "Records that could not be read.", _LABELS)
LATE = Counter("odf_ingest_late", "Rows with an event time before the watermark.", _LABELS)
BALANCE = Gauge(
    "odf_ingest_balance",
    "Records and derived rows, less rows, duplicates and dead letters: anything but 0 is a mistake of this program.",
    _LABELS,
)
RESTARTS = Counter("odf_ingest_restarts", "Times a dataset's queries were started anew.", ("dataset",))
BATCH_SECONDS = Histogram(
    "odf_ingest_batch_seconds",
    "From the messages of a batch to its completion.",
    _LABELS,
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
