"""The topics, their names and how they are created."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odf_common.errors import NotFoundError
from odf_common.kafka.clients import translated

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

COMPLETIONS = "odf.completions"
REJECTIONS = "odf.rejections"
BLOCKS = "odf.blocks"
DEAD_LETTERS = "odf.dead-letters"

MAX_MESSAGE_SIZE = 16 << 20  # bytes; above what sources accept, so that what is too large can be a dead letter

_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic to be created; everything but its name only counts when it does not exist yet."""

    name: str
    partitions: int = 1
    max_message_size: int = MAX_MESSAGE_SIZE
    retention_ms: int = -1  # kept for ever: what a topic holds is part of what the chain says it read


SERVICE_TOPICS = (
    Topic(name=COMPLETIONS, retention_ms=7 * 24 * 3_600_000),
    Topic(name=REJECTIONS, retention_ms=7 * 24 * 3_600_000),
    Topic(name=BLOCKS),
    # A letter holds a whole message and a note beside it: the largest of a push topic must fit.
    Topic(name=DEAD_LETTERS, max_message_size=MAX_MESSAGE_SIZE + (1 << 20)),
)


def create_topics(admin: AdminClient, topics: Iterable[Topic], *, timeout_s: float = _TIMEOUT_S) -> None:
    """Create those that do not exist; StoreUnavailableError if the broker does not answer."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic

    wanted = [
        NewTopic(
            topic.name,
            num_partitions=topic.partitions,
            config={
                "max.message.bytes": str(topic.max_message_size),
                "retention.ms": str(topic.retention_ms),
                # Positions and times are promises to publishers: the broker may not rewrite them.
                "cleanup.policy": "delete",
                "message.timestamp.type": "CreateTime",
            },
        )
        for topic in topics
    ]
    if not wanted:
        return
    for name, created in admin.create_topics(wanted, request_timeout=timeout_s).items():
        with translated(f"topic {name}"):
            try:
                created.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic as the broker knows it. The id tells a topic from an earlier one of the same name."""

    name: str
    id: str
    partitions: int


def describe_topic(admin: AdminClient, name: str, *, timeout_s: float = _TIMEOUT_S) -> TopicDescription:
    """What the broker says of a topic; NotFoundError if it does not exist."""
    from confluent_kafka import KafkaError, KafkaException, TopicCollection

    with translated(f"topic {name}"):
        try:
            found = admin.describe_topics(TopicCollection([name]), request_timeout=timeout_s)[name].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise NotFoundError(f"there is no topic {name}") from error
            raise
    return TopicDescription(name=name, id=str(found.topic_id), partitions=len(found.partitions))
