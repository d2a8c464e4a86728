"""What the committer counts."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

BLOCKS = Counter("odf_committer_blocks_total", "Blocks committed.")
COMPLETIONS = Counter("odf_committer_completions_total", "Completions received.")
REPEATED = Counter("odf_committer_repeated_total", "Completions that were committed before.")
REJECTIONS = Counter("odf_committer_rejections_total", "Completions that were rejected.", ["reason"])
MALFORMED = Counter("odf_committer_malformed_total", "Messages that are no completions.")
NOTIFICATIONS = Counter("odf_committer_notifications_total", "Notifications of new blocks sent.")
COMMIT_SECONDS = Histogram(
    "odf_committer_commit_seconds",
    "Time from a group of completions to the journal.",
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
WAITING = Gauge("odf_committer_waiting", "Completions that wait for their predecessor.", multiprocess_mode="livemax")
