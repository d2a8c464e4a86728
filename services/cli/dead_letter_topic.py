"""The topic of dead letters, as commands read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from odf_common.errors import MalformedBytesError
from odf_common.kafka.clients import headers_of
from odf_common.kafka.topics import DEAD_LETTERS
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote
from odf_common.messages.dead_letter_retry import RETRIED_HEADER, RetriedNote
from services.cli.tables import printable

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from odf_common.identity.did import DatasetId

Key = tuple[str, int, int, int | None]
"""What names a record for ever: topic id, partition, offset, index."""

Place = tuple[str, int, int]
"""What names a message for ever: topic id, partition, offset."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read: where it came from, why, its bytes, and how often it was sent again."""

    note: DeadLetterNote
    value: bytes
    attempts: int = 0
    sent_as: Place | None = None
    """Where it was sent to the last time."""

    @property
    def position(self) -> str:
        """Its name on the command line."""
        index = "" if self.note.index is None else f":{self.note.index}"
        return f"{self.note.partition}:{self.note.offset}{index}"

    @property
    def key(self) -> Key:
        """Its name for ever."""
        return key_of(self.note)

    @property
    def place(self) -> Place:
        """The message that it is, or was in."""
        return self.note.topic_id, self.note.partition, self.note.offset


def key_of(note: DeadLetterNote | RetriedNote) -> Key:
    """The record that a note is about."""
    return note.topic_id, note.partition, note.offset, note.index


def dead_letters(reader: Consumer, dataset_id: DatasetId) -> Iterator[DeadLetter]:
    """The dead letters of a dataset, each once: after a crash the same one may have been sent twice."""
    from services.cli.topic_reading import read_to_end

    attempts = _attempts(reader, dataset_id)
    seen: set[Key] = set()
    for message in read_to_end(reader, DEAD_LETTERS):
        letter = readable(message, dataset_id, attempts)
        if letter is not None and letter.key not in seen:
            seen.add(letter.key)
            yield letter


def letters_since(reader: Consumer, dataset_id: DatasetId, start: Mapping[int, int]) -> Iterator[DeadLetter]:
    """The dead letters of a dataset that came after these positions."""
    from services.cli.topic_reading import read_to_end

    found = (readable(message, dataset_id) for message in read_to_end(reader, DEAD_LETTERS, start))
    return (letter for letter in found if letter is not None)


def readable(
    message: Message, dataset_id: DatasetId, attempts: Mapping[Key, RetriedNote] | None = None
) -> DeadLetter | None:
    """The dead letter of the dataset; a note that is none hides only its own message."""
    try:
        return _of_message(message, dataset_id, attempts or {})
    except MalformedBytesError as error:
        place = f"{message.topic()}, position {message.offset()}"
        typer.echo(f"note: skipped what is no dead letter, topic {place}: {printable(str(error))}", err=True)
        return None


def _of_message(message: Message, dataset_id: DatasetId, attempts: Mapping[Key, RetriedNote]) -> DeadLetter | None:
    header = _header(message, dataset_id, DEAD_LETTER_HEADER)
    if header is None:
        return None
    note = DeadLetterNote.from_json(header)
    value = message.value() or b""
    again = attempts.get(key_of(note))
    return DeadLetter(
        note,
        value if isinstance(value, bytes) else value.encode(),
        0 if again is None else again.attempt,
        None if again is None else (again.topic_id, again.new_partition, again.new_offset),
    )


def _attempts(reader: Consumer, dataset_id: DatasetId) -> Mapping[Key, RetriedNote]:
    """The last attempt at each record that was sent again. Marks stand behind letters, so they are looked for first."""
    from services.cli.topic_reading import read_to_end

    found: dict[Key, RetriedNote] = {}
    for message in read_to_end(reader, DEAD_LETTERS):
        header = _header(message, dataset_id, RETRIED_HEADER)
        if header is None:
            continue
        try:
            note = RetriedNote.from_json(header)
        except MalformedBytesError:
            continue  # whoever wrote it: the letter is shown as if it had never been sent again
        found[key_of(note)] = max(note, found.get(key_of(note), note), key=lambda each: each.attempt)
    return found


def _header(message: Message, dataset_id: DatasetId, name: str) -> bytes | None:
    key = message.key()
    if (key if isinstance(key, bytes) else str(key).encode()) != str(dataset_id).encode():
        return None
    return dict(headers_of(message)).get(name)
