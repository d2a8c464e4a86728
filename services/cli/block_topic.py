"""The topic of notifications, as commands follow it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odf_common.kafka.topics import BLOCKS
from odf_common.messages.block_appended import AppendedBlock, BlockAppended
from services.cli import topic_reading

if TYPE_CHECKING:
    from confluent_kafka import Consumer


class BlockFeed:
    """Notifications from where the topic ended when the feed was opened."""

    def __init__(self, reader: Consumer) -> None:
        self._reader = reader

    def poll(self, timeout_s: float) -> list[AppendedBlock]:
        """What came within a time, in order; of all datasets."""
        messages = topic_reading.poll(self._reader, BLOCKS, timeout_s)
        return [BlockAppended.from_json(value).data for message in messages if (value := message.value()) is not None]


@contextmanager
def block_feed(servers: str) -> Iterator[BlockFeed]:
    """Open a feed: nothing that is told from now on is missed."""
    with topic_reading.opened_consumer(servers) as reader:
        topic_reading.assign(reader, BLOCKS, topic_reading.ends(reader, BLOCKS))
        yield BlockFeed(reader)
