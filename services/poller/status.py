"""How the last poll of a dataset went, for those who ask: a small file beside the data."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Literal

from odf_common.errors import MalformedBytesError
from odf_common.identity.did import DatasetId
from odf_common.messages.base import Message
from odf_common.settings import Settings
from services.poller.lock import polls_folder


class PollStatus(Message):
    """The last poll. `failures` are those since the last success."""

    started: datetime
    finished: datetime
    result: Literal["sent", "up to date", "failed"]
    detail: str
    has_more: bool = False
    failures: int = 0


def read_status(settings: Settings, dataset_id: DatasetId) -> PollStatus | None:
    """How the last poll went; None if nobody knows."""
    try:
        return PollStatus.from_json((polls_folder(settings) / f"{dataset_id.multibase}.json").read_bytes())
    except (FileNotFoundError, MalformedBytesError):
        return None


def write_status(settings: Settings, dataset_id: DatasetId, status: PollStatus) -> None:
    """Note how a poll went."""
    path = polls_folder(settings) / f"{dataset_id.multibase}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(status.to_json())
    part.replace(path)
