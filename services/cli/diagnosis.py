"""The steps of an event's way, each found in what the step before left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from odf_common.chain.walk import decoded, walk_back
from odf_common.errors import MalformedBytesError, NotFoundError
from odf_common.kafka.topics import BLOCKS, COMPLETIONS, REJECTIONS
from odf_common.messages.block_appended import BlockAppended
from odf_common.messages.completion import Completion, Rejection
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import AddData
from odf_common.staging import staged_slice
from odf_common.storage.layout import HEAD
from odf_common.timestamp import Timestamp
from services.cli import topic_reading

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.repository.repository import Repository
    from odf_common.settings import Settings
    from odf_common.wire.encoded_block import EncodedBlock

_SLACK_S = 60.0  # clocks of machines differ: topics are read from this much earlier on


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the way: whether it was taken, when, and what to do if it was not."""

    name: str
    ok: bool
    what: str
    time: Timestamp | None = None
    hint: str | None = None

    def document(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "step": self.name,
            "ok": self.ok,
            "time": str(self.time) if self.time else None,
            "what": self.what,
            "hint": self.hint,
        }

    def row(self) -> list[str]:
        """For people."""
        return [self.name, "ok" if self.ok else "STUCK", str(self.time) if self.time else "-", self.what]


@dataclass(frozen=True, slots=True)
class Position:
    """The newest event: its place in the topic and its time."""

    partition: int
    offset: int
    time: Timestamp

    def is_in(self, offsets: KafkaOffsets) -> bool:
        """Whether a range of positions holds it."""
        start, end = offsets.start.get(self.partition, 0), offsets.next.get(self.partition, 0)
        return start <= self.offset < end


class Diagnosis:
    """Looks for the newest event of a source everywhere."""

    def __init__(
        self,
        settings: Settings,
        repository: Repository,
        entry: DatasetEntry,
        binding: PushSourceBinding,
        reader: Consumer,
    ) -> None:
        self._settings = settings
        self._catalog = repository.catalog
        self._dataset = repository.open(entry.id)
        self._binding = binding
        self._reader = reader

    def steps(self) -> Iterator[Step]:
        """The steps in their order. Whoever asks stops at the first that was not taken."""
        position = self._newest()
        yield self._topic_step(position)
        assert position is not None, "a topic without messages is where an event is stuck"
        block = self._block(position)
        completion = self._completion(position)
        yield self._batch_step(position, completion, committed=block is not None)
        if completion is not None:
            yield self._stage_step(completion, committed=block is not None)
        yield self._block_step(block, completion)
        assert block is not None, "without a block this is where an event is stuck"
        yield self._notification_step(block)

    def _newest(self) -> Position | None:
        """The message with the latest time; None if the topic holds none, or does not exist."""
        try:
            bounds = topic_reading.bounds(self._reader, self._binding.topic)
        except NotFoundError:
            return None
        # The last few: markers of transactions take positions as well.
        last = {each: max(end - 3, start) for each, (start, end) in bounds.items() if start < end}
        newest = None
        for message in topic_reading.read_to_end(self._reader, self._binding.topic, last):
            found = _position(message)
            if newest is None or found.time >= newest.time:
                newest = found
        return newest

    def _topic_step(self, position: Position | None) -> Step:
        topic = self._binding.topic
        if position is None:
            return Step(
                name="topic",
                ok=False,
                what=f"topic {topic} holds no messages or does not exist",
                hint=f"a running system (`odf up`) makes the topic, then publish: "
                f"`odf ingest {self._dataset.entry.alias} FILE --source {self._binding.source_name}`",
            )
        place = f"partition {position.partition}, position {position.offset} of topic {topic}"
        return Step(name="topic", ok=True, time=position.time, what=place)

    def _block(self, position: Position) -> EncodedBlock | None:
        """The block that covers the position, looked for from the head back."""
        head = self._dataset.refs.get(HEAD)
        for stored in walk_back(self._dataset.objects, head) if head else ():
            encoded = decoded(stored)
            offsets = _offsets(encoded.block.event, self._binding.source_name)
            if offsets is None:
                continue
            if position.is_in(offsets):
                return encoded
            if offsets.next.get(position.partition, 0) <= position.offset:
                return None  # earlier blocks end before it as well
        return None

    def _completion(self, position: Position) -> tuple[Completion, Timestamp] | None:
        """The latest proposal that covers the position."""
        found = None
        for message in self._since(COMPLETIONS, position.time):
            completion = _read(Completion, message)
            if completion is None or completion.dataset_id != self._dataset.entry.id:
                continue
            offsets = _offsets(completion.add_data, self._binding.source_name)
            if offsets is not None and position.is_in(offsets):
                found = completion, _time(message)
        return found

    def _since(self, topic: str, time: Timestamp) -> Iterator[Message]:
        start = topic_reading.positions_at(self._reader, topic, time.plus_seconds(-_SLACK_S))
        return topic_reading.read_to_end(self._reader, topic, start)

    def _batch_step(
        self, position: Position, completion: tuple[Completion, Timestamp] | None, *, committed: bool
    ) -> Step:
        if completion is not None:
            return Step(name="batch", ok=True, time=completion[1], what=f"proposed as {completion[0].id}")
        if committed:
            return Step(name="batch", ok=True, what="done; its proposal is no longer kept")
        if not self._binding.settings.enabled:
            return Step(
                name="batch",
                ok=False,
                what="the source is switched off",
                hint=f"`odf source enable {self._dataset.entry.alias} {self._binding.source_name}` switches it on",
            )
        if self._binding.problem is not None:
            return Step(
                name="batch",
                ok=False,
                what=f"the source stopped: {self._binding.problem}",
                hint=f"mend the reason, then `odf source resume {self._dataset.entry.alias} "
                f"{self._binding.source_name}` (with --accept-gap if messages are lost for good)",
            )
        return Step(
            name="batch",
            ok=False,
            what=f"no batch covers position {position.offset} yet",
            hint=f"the ingest job does not read or is behind: `odf status` shows the lag, "
            f"{self._settings.data_dir / 'logs' / 'ingest.log'} what it does",
        )

    def _stage_step(self, completion: tuple[Completion, Timestamp], *, committed: bool) -> Step:
        slices = completion[0].slices
        if not slices:
            return Step(name="stage", ok=True, time=completion[1], what="the batch has no rows, so no slice")
        folder, dataset_id = self._settings.staging_folder, self._dataset.entry.id
        paths = [staged_slice(folder, dataset_id, each.physical_hash) for each in slices]
        missing = [] if committed else [path for path in paths if not path.exists()]
        if not missing:
            names = ", ".join(each.physical_hash.short for each in slices[:3]) + (", …" if len(slices) > 3 else "")
            return Step(name="stage", ok=True, time=completion[1], what=f"slice {names}")
        return Step(
            name="stage",
            ok=False,
            what=f"{missing[0]} does not exist",
            hint="the staging folder was cleared, or job and committer do not share it (ODF_STAGING)",
        )

    def _block_step(self, block: EncodedBlock | None, completion: tuple[Completion, Timestamp] | None) -> Step:
        if block is not None:
            number = block.block.sequence_number
            return Step(name="block", ok=True, time=block.block.system_time, what=f"block {number}, {block.hash}")
        rejection = self._rejection(completion) if completion else None
        if rejection is not None:
            return Step(
                name="block",
                ok=False,
                what=f"refused ({rejection.reason}): {rejection.message}",
                hint=f"the job builds the batch again; if it does not, see {self._settings.data_dir / 'logs'}",
            )
        return Step(
            name="block",
            ok=False,
            what="staged, but not committed",
            hint=f"the committer does not answer: {self._settings.data_dir / 'logs' / 'committer.log'} says why",
        )

    def _rejection(self, completion: tuple[Completion, Timestamp]) -> Rejection | None:
        found = None
        for message in self._since(REJECTIONS, completion[1]):
            rejection = _read(Rejection, message)
            if rejection is not None and rejection.completion_id == completion[0].id:
                found = rejection
        return found

    def _notification_step(self, block: EncodedBlock) -> Step:
        for message in self._since(BLOCKS, block.block.system_time):
            told = _read(BlockAppended, message)
            if told is not None and told.data.block_hash == block.hash:
                return Step(name="notification", ok=True, time=_time(message), what=f"message {message.offset()}")
        pending = any(
            change.record.dataset_id == self._dataset.entry.id for change in self._catalog.pending_journal(limit=1000)
        )
        where = "it waits in the journal" if pending else "the journal says that it was told"
        return Step(
            name="notification",
            ok=False,
            what=f"no notification in {BLOCKS}: {where}",
            hint="the committer sends what waits when it runs: `odf up`, then look again"
            if pending
            else f"topic {BLOCKS} was deleted or is another cluster's",
        )


def _offsets(event: object, source_name: str) -> KafkaOffsets | None:
    if not isinstance(event, AddData) or event.new_source_state is None:
        return None
    if event.new_source_state.source_name != source_name:
        return None
    try:
        return KafkaOffsets.of_state(event.new_source_state)
    except MalformedBytesError:
        return None


def _read(kind: Any, message: Message) -> Any:
    """The message's value; None for what is none of ours."""
    try:
        return kind.from_json(message.value() or b"")
    except MalformedBytesError:
        return None


def _position(message: Message) -> Position:
    partition, offset = message.partition(), message.offset()
    assert partition is not None, "a consumed message has a partition"
    assert offset is not None, "a consumed message has an offset"
    return Position(partition, offset, _time(message))


def _time(message: Message) -> Timestamp:
    return Timestamp.from_datetime(datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC))
