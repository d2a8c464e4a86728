"""The mark that a dead letter was sent to its source again: topic `odf.dead-letters`, key = dataset id, no value."""

from __future__ import annotations

from odf_common.identity.did import DatasetId
from odf_common.messages.base import Message
from odf_common.timestamp import Timestamp

RETRIED_HEADER = "odf-dead-letter-retried"
"""The header that holds the `RetriedNote`. Messages with it are no dead letters."""

RETRY_EVENT_SOURCE = "odf-dead-letters"
"""Whose event ids those of retries are: `topic_id/partition/offset[/index]#attempt`."""


class RetriedNote(Message):
    """Which dead letter was sent again, and where it is now. A letter may have several, one for each attempt."""

    dataset_id: DatasetId
    source_name: str
    topic_id: str
    partition: int
    offset: int
    index: int | None = None
    attempt: int
    """From 1."""
    new_partition: int
    new_offset: int
    """Of the message that repeats it, in the source's topic."""
    time: Timestamp
