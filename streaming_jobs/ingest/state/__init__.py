"""What merges compare new rows with: the keys or the latest rows of a dataset, kept beside its chain."""

from streaming_jobs.ingest.state.errors import StateDamagedError
from streaming_jobs.ingest.state.keyed import KeyedStates
from streaming_jobs.ingest.state.ledger import KnownKeys
from streaming_jobs.ingest.state.progress import OnProgress, Progress
from streaming_jobs.ingest.state.snapshot import SnapshotState
from streaming_jobs.ingest.state.upsert import LiveRows

__all__ = ["KeyedStates", "KnownKeys", "LiveRows", "OnProgress", "Progress", "SnapshotState", "StateDamagedError"]
