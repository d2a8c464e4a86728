"""Records that could not be read: topic `odf.dead-letters`, key = dataset id, value = the original bytes, to 16 MiB."""

from __future__ import annotations

from odf_common.identity.did import DatasetId
from odf_common.messages.base import Message
from odf_common.timestamp import Timestamp

DEAD_LETTER_HEADER = "odf-dead-letter"
"""The header that holds the `DeadLetterNote`."""


class DeadLetterNote(Message):
    """Where an unreadable record came from and what is wrong with it.

    `dataset_id`, `topic_id`, `partition`, `offset` and `index` name the record: after a crash the same one may come
    twice, and counts once.
    """

    dataset_id: DatasetId
    source_name: str
    topic: str
    topic_id: str
    partition: int
    offset: int
    index: int | None = None
    """The place of the record in its message, from 0; absent when the message as a whole cannot be read."""
    content_type: str | None = None
    """Of the message, where it has the header: the value is to be read as that, or refers to an upload."""
    piece_of: str | None = None
    """The payload that the message is a piece of: alone it would be taken for all of it."""
    timestamp: Timestamp
    """Of the message, as Kafka has it."""
    code: str
    """The kind of trouble for programs, such as `InvalidJson`."""
    reason: str
    """What is wrong, for people."""
    time: Timestamp
    """When it was found."""
