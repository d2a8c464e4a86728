"""One poll of a dataset at a time on a machine. Between machines, the state that a poll builds on does the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odf_common.identity.did import DatasetId
from odf_common.service_process import lock_or_holder
from odf_common.settings import Settings
from services.poller.errors import PollError


class PollRunsError(PollError):
    """Somebody else polls the dataset at this moment."""


def polls_folder(settings: Settings) -> Path:
    """What the poller notes of its polls: it may be deleted."""
    return settings.data_dir / "polls"


@contextmanager
def locked_dataset(settings: Settings, dataset_id: DatasetId) -> Iterator[None]:
    """PollRunsError if the dataset is being polled."""
    folder = polls_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    lock = lock_or_holder(folder / f"{dataset_id.multibase}.lock")
    if isinstance(lock, str):
        raise PollRunsError(f"the dataset is being polled already, by {lock}")
    with lock:
        yield
