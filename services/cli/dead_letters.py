"""`odf dead-letters`: records that could not be read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odf_common.errors import MalformedBytesError, NotFoundError
from services.cli.opening import DataDir, DatasetArgument, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, json_array, reporting
from services.cli.tables import printable

if TYPE_CHECKING:
    from confluent_kafka import Message

    from odf_common.identity.did import DatasetId
    from odf_common.messages.dead_letter import DeadLetterNote
    from odf_common.settings import Settings

app = typer.Typer(no_args_is_help=True)

_SHOWN_BYTES = 60


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read: where it came from, why, and its bytes."""

    note: DeadLetterNote
    value: bytes

    @property
    def position(self) -> str:
        """Its name on the command line."""
        index = "" if self.note.index is None else f":{self.note.index}"
        return f"{self.note.partition}:{self.note.offset}{index}"


@app.command(name="list", epilog="Example: odf dead-letters list city.temperature --limit 20")
@reporting
def list_(
    dataset: DatasetArgument,
    limit: Annotated[int | None, typer.Option(min=1, help="Show so many at most.", show_default="all")] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Iterator[str]:
    """List the dead letters of a dataset, oldest first: position, time, reason and the beginning of the record."""
    settings = settings_of(data_dir)
    found = islice(_dead_letters(settings, _id_of(settings, dataset)), limit)
    if output == Format.JSON:
        yield from json_array(map(_document, found))
    else:
        yield from map(_line, found)


@app.command(epilog="Example: odf dead-letters show city.temperature 0:17:3 > record.json")
@reporting
def show(
    dataset: DatasetArgument,
    position: Annotated[
        str, typer.Argument(help="PARTITION:OFFSET or PARTITION:OFFSET:INDEX, as listed.", show_default=False)
    ],
    source: Annotated[str | None, typer.Option(help="The push source, if several have the position.")] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Print the original bytes of a dead letter, and why it is one on stderr."""
    settings = settings_of(data_dir)
    for letter in _dead_letters(settings, _id_of(settings, dataset)):
        if letter.position == position and source in (None, letter.note.source_name):
            if output == Format.JSON:
                return Report("", _document(letter) | {"valueHex": letter.value.hex()})
            typer.echo(f"{letter.note.code}: {printable(letter.note.reason)}", err=True)
            sys.stdout.buffer.write(letter.value)
            sys.stdout.buffer.flush()
            return Report("", {})
    raise NotFoundError(f"there is no dead letter at {position}; `odf dead-letters list {dataset}` shows all")


def _id_of(settings: Settings, dataset: str) -> DatasetId:
    with opened_repository(settings) as repository:
        return repository.catalog.dataset(parsed_ref(dataset)).id


def _dead_letters(settings: Settings, dataset_id: DatasetId) -> Iterator[DeadLetter]:
    """The dead letters of a dataset, each once: after a crash the same one may have been sent twice."""
    from odf_common.endpoints import bootstrap_servers
    from odf_common.kafka.topics import DEAD_LETTERS
    from services.cli.topic_reading import opened_consumer, read_to_end

    seen: set[tuple[object, ...]] = set()
    with opened_consumer(bootstrap_servers(settings)) as reader:
        for message in read_to_end(reader, DEAD_LETTERS):
            letter = _readable(message, dataset_id)
            if letter is None:
                continue
            note = letter.note
            key = (note.topic_id, note.partition, note.offset, note.index)
            if key not in seen:
                seen.add(key)
                yield letter


def _readable(message: Message, dataset_id: DatasetId) -> DeadLetter | None:
    """The dead letter of the dataset; a note that is none hides only its own message."""
    try:
        return _of_message(message, dataset_id)
    except MalformedBytesError as error:
        place = f"{message.topic()}, position {message.offset()}"
        typer.echo(f"note: skipped what is no dead letter, topic {place}: {printable(str(error))}", err=True)
        return None


def _of_message(message: Message, dataset_id: DatasetId) -> DeadLetter | None:
    from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote

    key = message.key()
    if (key if isinstance(key, bytes) else str(key).encode()) != str(dataset_id).encode():
        return None
    header = dict(message.headers() or []).get(DEAD_LETTER_HEADER)
    if header is None:
        return None
    note = DeadLetterNote.from_json(header if isinstance(header, bytes) else header.encode())
    value = message.value()
    return DeadLetter(note, value if isinstance(value, bytes) else b"")


def _document(letter: DeadLetter) -> dict[str, Any]:
    note = letter.note.model_dump(mode="json", by_alias=True, exclude_none=True)
    return note | {
        "position": letter.position,
        "size": len(letter.value),
        "value": letter.value.decode("utf-8", "replace"),
    }


def _line(letter: DeadLetter) -> str:
    value = letter.value[:_SHOWN_BYTES].decode("utf-8", "replace")
    more = "…" if len(letter.value) > _SHOWN_BYTES else ""
    note = letter.note
    reason = f"{note.code}: {printable(note.reason)}"
    return f"{note.source_name}  {letter.position}  {note.timestamp}  {reason}  {printable(value)}{more}"
