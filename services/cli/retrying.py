"""Sending dead letters to their sources again, and looking what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from odf_common.errors import StoreUnavailableError
from odf_common.kafka.clients import admin_client, headers_of, producer
from odf_common.kafka.topics import DEAD_LETTERS, describe_topic
from odf_common.messages.dead_letter_retry import RETRIED_HEADER, RetriedNote
from odf_common.messages.payload import CONTENT_TYPE_HEADER, UPLOAD_MEDIA_TYPE
from odf_common.timestamp import Timestamp
from services.cli import topic_reading
from services.cli.block_topic import block_feed
from services.cli.dead_letter_topic import DeadLetter, Place, letters_since
from services.cli.opening import chain_of
from services.cli.producing import Delivered, Outgoing, Sender, Sent
from services.cli.receipts import Receipt, wait_for_blocks
from services.cli.receiving_source import binding_of_source
from services.cli.retry_message import FetchOriginal, NotRetriableError, retry_message
from services.cli.tables import printable

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.metadata.events import AddPushSource
    from odf_common.repository.repository import Repository
    from odf_common.settings import Settings

_FLUSH_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a dead letter that was to be sent again."""

    letter: str
    """Its position."""
    source: str
    state: str
    """`sent`, `taken`, `duplicate`, `dead`, `unknown` or `refused`."""
    reason: str | None = None
    position: str | None = None
    """Of the message that repeats it."""
    block: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether it still is a dead letter, as far as anybody knows."""
        return self.state in ("dead", "refused", "unknown")

    @property
    def text(self) -> str:
        """For people."""
        what = {
            "sent": f"sent again as {self.position}",
            "taken": f"taken in block {self.block}",
            "duplicate": f"was taken before, in block {self.block}"
            if self.block
            else f"was sent again before as {self.position}, and is no dead letter there",
            "dead": f"dead letter again as {self.position}: {printable(self.reason or '')}",
            "unknown": f"sent again as {self.position}, {self.reason}",
            "refused": f"not sent: {self.reason}",
        }[self.state]
        return f"{self.source}  {self.letter}  {what}"

    def document(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "position": self.letter,
            "source": self.source,
            "state": self.state,
            "reason": self.reason,
            "newPosition": self.position,
            "blockHash": self.block,
        }


def retried(
    settings: Settings,
    repository: Repository,
    entry: DatasetEntry,
    letters: Callable[[], Iterable[DeadLetter]],
    *,
    dead: Callable[[], Container[Place]],
    wait_s: float | None,
) -> list[Outcome]:
    """Send letters again, those of one source together; `wait_s` says how long blocks may be waited for.

    They are read once more for each source: together they may be more than memory holds. `dead` are the places of all
    dead letters, asked for where one was sent again before: sent twice it would be taken twice.
    """
    from odf_common.endpoints import bootstrap_servers

    servers = bootstrap_servers(settings)
    state = chain_of(repository.open(entry.id)).state()
    outcomes: list[Outcome] = []
    for name in dict.fromkeys(letter.note.source_name for letter in letters()):
        group = filter(partial(_is_of, name), letters())
        source = state.source(name)
        if source is None:
            reason = f"source {name!r} was disabled"
            outcomes += [_refused(letter.position, name, reason) for letter in group]
            continue
        binding = binding_of_source(repository, entry, state, name)
        outcomes += _Retry(servers, binding, source, dead).run(group, wait_s)
    return outcomes


def _sent_before(letter: DeadLetter, dead: Container[Place]) -> Outcome:
    """What became of a letter that was sent again before."""
    assert letter.sent_as is not None
    position = f"{letter.sent_as[1]}:{letter.sent_as[2]}"
    source = letter.note.source_name
    if letter.sent_as in dead:
        reason = f"it was sent again as {position}, which is a dead letter of its own: retry that one"
        return _refused(letter.position, source, reason)
    return Outcome(letter=letter.position, source=source, state="duplicate", position=position)


def _is_of(source: str, letter: DeadLetter) -> bool:
    return letter.note.source_name == source


def _refused(letter: str, source: str, reason: str) -> Outcome:
    return Outcome(letter=letter, source=source, state="refused", reason=reason)


@dataclass(slots=True)
class _Retry:
    """The letters of one source."""

    servers: str
    binding: PushSourceBinding
    source: AddPushSource
    dead: Callable[[], Container[Place]]
    _notes: list[DeadLetter] = field(default_factory=list)
    """What was sent, without the bytes."""
    _refused: list[Outcome] = field(default_factory=list)
    """What was not sent."""

    def run(self, letters: Iterable[DeadLetter], wait_s: float | None) -> list[Outcome]:
        with ExitStack() as stack:
            reader = stack.enter_context(topic_reading.opened_consumer(self.servers))
            feed = None if wait_s is None else stack.enter_context(block_feed(self.servers))
            before = topic_reading.ends(reader, DEAD_LETTERS)
            original = originals_of(reader, self.binding.topic, self._topic_id())
            sent = Sender(self.servers).send(self.binding.topic, self._messages(letters, original))
            self._mark(sent)
            if feed is None or wait_s is None or not sent.messages:
                return [*self._refused, *self._outcomes(sent, lambda place: ("sent", None, None))]
            receipt = wait_for_blocks(
                feed.poll, self.binding.dataset_id, self.source.source_name, sent.start, sent.next, timeout_s=wait_s
            )
            if receipt is None:
                reason = f"no block came for {wait_s:g} s"
                return [*self._refused, *self._outcomes(sent, lambda place: ("unknown", reason, None))]
            dead = self._dead_again(reader, before)
            return [*self._refused, *self._outcomes(sent, lambda place: _judged(place, receipt, dead))]

    def _topic_id(self) -> str:
        return describe_topic(admin_client(self.servers), self.binding.topic).id

    def _messages(self, letters: Iterable[DeadLetter], original: FetchOriginal) -> Iterator[Outgoing]:
        for letter in letters:
            if letter.sent_as is not None:
                self._refused.append(_sent_before(letter, self.dead()))
                continue
            try:
                message = retry_message(letter, self.source, original)
            except NotRetriableError as error:
                self._refused.append(_refused(letter.position, self.source.source_name, str(error)))
                continue
            self._notes.append(DeadLetter(letter.note, b"", letter.attempts))
            yield message

    def _mark(self, sent: Sent) -> None:
        """Note in the topic which letters are on their way again: they are not listed any more."""
        client = producer(self.servers)
        for number, letter in enumerate(self._notes):
            place = sent.places[number]
            note = RetriedNote(
                **letter.note.model_dump(
                    include={"dataset_id", "source_name", "topic_id", "partition", "offset", "index"}
                ),
                attempt=letter.attempts + 1,
                new_partition=place.partition,
                new_offset=place.offset,
                time=Timestamp.now(),
            )
            client.produce(
                DEAD_LETTERS, b"", key=str(self.binding.dataset_id), headers={RETRIED_HEADER: note.to_json()}
            )
        if left := client.flush(_FLUSH_TIMEOUT_S):
            raise StoreUnavailableError(f"topic {DEAD_LETTERS}: {left} marks were not confirmed; all letters were sent")

    def _dead_again(self, reader: Any, before: Mapping[int, int]) -> dict[Delivered, str]:
        """Of the new dead letters of the source the positions and reasons."""
        found: dict[Delivered, str] = {}
        for letter in letters_since(reader, self.binding.dataset_id, before):
            note = letter.note
            if note.source_name == self.source.source_name:
                found.setdefault(Delivered(note.partition, note.offset), f"{note.code}: {note.reason}")
        return found

    def _outcomes(
        self, sent: Sent, judge: Callable[[Delivered], tuple[str, str | None, str | None]]
    ) -> Iterator[Outcome]:
        for number, letter in enumerate(self._notes):
            place = sent.places[number]
            state, reason, block = judge(place)
            yield Outcome(
                letter=letter.position,
                source=self.source.source_name,
                state=state,
                reason=reason,
                position=f"{place.partition}:{place.offset}",
                block=block,
            )


def _judged(place: Delivered, receipt: Receipt, dead: Mapping[Delivered, str]) -> tuple[str, str | None, str | None]:
    if place in dead:
        return "dead", dead[place], None
    for repeat in receipt.repeats:
        if Delivered(repeat.partition, repeat.offset) == place:
            return "duplicate", None, str(repeat.block) if repeat.block else None
    block = receipt.block_of(place.partition, place.offset)
    return "taken", None, str(block.block_hash) if block else None


def originals_of(reader: Any, topic: str, topic_id: str) -> FetchOriginal:
    """Looks for messages in the source's topic, if it still is the one that the letters are from."""

    @lru_cache(maxsize=1)  # many records of one message come one after another
    def fetch(of_topic: str, partition: int, offset: int) -> bytes | None:
        if of_topic != topic_id:
            return None
        topic_reading.assign(reader, topic, {partition: offset})
        for message in topic_reading.poll(reader, topic, topic_reading.REQUEST_TIMEOUT_S)[:1]:
            is_upload = dict(headers_of(message)).get(CONTENT_TYPE_HEADER) == UPLOAD_MEDIA_TYPE.encode()
            value = message.value()
            if message.offset() == offset and not is_upload:
                return value if isinstance(value, bytes) else None
        return None

    return fetch
