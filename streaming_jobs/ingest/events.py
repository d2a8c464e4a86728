"""What the job hears: blocks that were appended, and completions that were rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from odf_common.errors import MalformedBytesError
from odf_common.kafka.clients import consumer, translated
from odf_common.kafka.topics import BLOCKS, REJECTIONS
from odf_common.messages.block_appended import AppendedBlock, BlockAppended
from odf_common.messages.completion import Rejection

if TYPE_CHECKING:
    from confluent_kafka import Message

_BATCH = 1_000

_log = structlog.get_logger(__name__)


class Events:
    """Reads both topics from their ends on: what was before is in the chains."""

    def __init__(self, bootstrap_servers: str) -> None:
        from confluent_kafka import TopicPartition

        self._consumer = consumer(bootstrap_servers, group=f"ingest-{uuid4().hex}")
        with translated("listening for blocks"):
            # Positions are asked for here, so that nothing said from now on is missed.
            ends = [
                TopicPartition(topic, 0, self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
                for topic in (BLOCKS, REJECTIONS)
            ]
            self._consumer.assign(ends)

    def poll(self, timeout_s: float) -> list[AppendedBlock | Rejection]:
        """What was said since the last call; waits for the first of it."""
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        return [event for message in (first, *self._consumer.consume(_BATCH, 0)) if (event := _parsed(message))]

    def close(self) -> None:
        """Stop listening."""
        self._consumer.close()


def _parsed(message: Message) -> AppendedBlock | Rejection | None:
    if (error := message.error()) is not None:
        _log.warning("listening", error=error.str())
        return None
    value = message.value() or b""
    try:
        return Rejection.from_json(value) if message.topic() == REJECTIONS else BlockAppended.from_json(value).data
    except MalformedBytesError as error:
        _log.warning("not understood", topic=message.topic(), offset=message.offset(), error=str(error))
        return None
