"""A thread that plays job and committer: what comes to the topic of a source becomes blocks that are told."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from odf_common.catalog.catalog import Catalog
from odf_common.chain.state import ChainState
from odf_common.data.arrow_schema import encode_arrow_schema
from odf_common.data.slice_writer import SliceWriter
from odf_common.errors import NotFoundError
from odf_common.kafka.clients import admin_client, producer
from odf_common.kafka.topics import (
    BLOCKS,
    COMPLETIONS,
    DEAD_LETTERS,
    SERVICE_TOPICS,
    Topic,
    create_topics,
    describe_topic,
)
from odf_common.messages.appending import appended_block
from odf_common.messages.block_appended import BlockAppended
from odf_common.messages.completion import Completion
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData, MetadataEvent, SetDataSchema
from odf_common.metadata.fragments import DataSlice
from odf_common.repository.appending import append_events
from odf_common.repository.repository import Repository
from odf_common.settings import Settings
from odf_common.storage.layout import ObjectKind
from odf_common.timestamp import Timestamp
from odf_common.wire.decode import decode_block
from services.cli import topic_reading

SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("event_time", pa.timestamp("ms", "UTC")),
        pa.field("city", pa.string()),
    ]
)

NOW = Timestamp.now


def _topic_id(admin: AdminClient, topic: str) -> str:
    """A busy broker knows a topic a moment after it was made."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return describe_topic(admin, topic).id
        except NotFoundError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class PlayingSystem:
    """Reads the topic of the only source of a dataset while it is entered."""

    def __init__(self, settings: Settings, staging: Path) -> None:
        assert settings.kafka_bootstrap_servers is not None
        self.servers = settings.kafka_bootstrap_servers
        self._staging = staging
        self._catalog = Catalog.open(settings.catalog_url)
        self._repository = Repository.at(settings.repository_location, self._catalog)
        (self.entry,) = self._repository.datasets()
        (self.binding,) = self._catalog.push_sources(self.entry.id)
        admin = admin_client(self.servers)
        create_topics(admin, [*SERVICE_TOPICS, Topic(name=self.binding.topic)])
        self.topic_id = _topic_id(admin, self.binding.topic)
        self._producer = producer(self.servers)
        self.bad: set[str] = set()
        """Cities that make a record a dead letter."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._catalog.close()

    def _run(self) -> None:
        with topic_reading.opened_consumer(self.servers) as reader:
            topic_reading.assign(reader, self.binding.topic, {0: 0})
            while not self._stopping.is_set():
                if messages := topic_reading.poll(reader, self.binding.topic, 0.1):
                    self._commit(messages)

    def _commit(self, messages: list[Message]) -> None:
        cities, dead = [], 0
        for message in messages:
            for index, line in enumerate((message.value() or b"").splitlines()):
                try:
                    city = json.loads(line)["city"]
                    if city in self.bad:
                        raise ValueError(city)
                    cities.append(city)
                except ValueError:
                    dead += 1
                    self.send_dead_letter(message, index, line)
        first, last = messages[0].offset(), messages[-1].offset()
        assert first is not None
        assert last is not None
        offsets = KafkaOffsets(
            topic=self.binding.topic,
            topic_id=self.topic_id,
            start={0: first},
            next={0: last + 1},
            messages=len(messages),
            records=len(cities) + dead,
            dead_letters=dead,
        )

        def decide(chain: ChainState) -> list[MetadataEvent]:
            data = AddData(
                prev_offset=chain.last_offset,
                new_data=self._slice(chain.next_offset, cities) if cities else None,
                new_watermark=chain.watermark,
                new_source_state=offsets.to_state(self.binding.source_name),
            )
            self._send(COMPLETIONS, Completion(id="one", dataset_id=self.entry.id, system_time=NOW(), events=(data,)))
            schema = SetDataSchema(raw_arrow_schema=encode_arrow_schema(SCHEMA))
            return [data] if chain.data_schema is not None else [schema, data]

        self.tell(append_events(self._repository, self.entry.id, decide, NOW()))

    def tell(self, hashes: tuple[Any, ...]) -> None:
        """Send the notifications of blocks."""
        folder = self._repository.folder_of(self.entry)
        for block_hash in hashes:
            encoded = decode_block(folder.objects.get_block(block_hash))
            self._send(BLOCKS, BlockAppended.of(appended_block(self.entry.id, self.entry.alias, encoded)))

    def send_dead_letter(self, message: Message, index: int, value: bytes) -> None:
        """Send a dead letter, as often as it is asked for."""
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        note = DeadLetterNote(
            dataset_id=self.entry.id,
            source_name=self.binding.source_name,
            topic=self.binding.topic,
            topic_id=self.topic_id,
            partition=partition,
            offset=offset,
            index=index,
            timestamp=NOW(),
            code="InvalidJson",
            reason="not JSON",
            time=NOW(),
        )
        header: list[tuple[str, str | bytes | None]] = [(DEAD_LETTER_HEADER, note.to_json())]
        for _ in range(2):  # as after a crash
            self._producer.produce(DEAD_LETTERS, value, key=str(self.entry.id), headers=header)
        self._producer.flush()

    def _send(self, topic: str, message: Any) -> None:
        self._producer.produce(topic, message.to_json(), key=str(self.entry.id))
        self._producer.flush()

    def _slice(self, start: int, cities: list[str]) -> DataSlice:
        count = len(cities)
        now = datetime.now(UTC)
        columns = [list(range(start, start + count)), [0] * count, [now] * count, [now] * count, cities]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        with SliceWriter(self._staging / "slice.pending", SCHEMA) as writer:
            writer.write(pa.record_batch(arrays, SCHEMA))
        written = writer.close()
        objects = self._repository.folder_of(self.entry).objects
        objects.put_file(ObjectKind.DATA, written.physical_hash, written.path)
        return written.to_data_slice()
