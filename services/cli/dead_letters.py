"""`odf dead-letters`: records that could not be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odf_common.errors import NotFoundError
from services.cli.opening import DataDir, DatasetArgument, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, json_array, reporting
from services.cli.tables import printable

if TYPE_CHECKING:
    from odf_common.identity.did import DatasetId
    from odf_common.settings import Settings
    from services.cli.dead_letter_topic import DeadLetter, Place
    from services.cli.retrying import Outcome

app = typer.Typer(no_args_is_help=True)

_SHOWN_BYTES = 60

Code = Annotated[str | None, typer.Option(help="Only those with this code, such as InvalidJson.", show_default="any")]
Source = Annotated[str | None, typer.Option(help="Only those of this source.", show_default="any")]


@app.command(name="list", epilog="Example: odf dead-letters list city.temperature --code WrongType --limit 20")
@reporting
def list_(
    dataset: DatasetArgument,
    code: Code = None,
    source: Source = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show those as well that were sent again.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Show so many at most.", show_default="all")] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Iterator[str]:
    """List the dead letters of a dataset, oldest first: position, time, reason and the beginning of the record.

    Those that were sent again are left out: if they could not be read once more, there is a newer one.
    """
    settings = settings_of(data_dir)
    letters = _dead_letters(settings, _id_of(settings, dataset))
    found = islice(filter(_wanted(code, source, retried=show_all), letters), limit)
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
    raise NotFoundError(f"there is no dead letter at {position}; `odf dead-letters list {dataset} --all` shows all")


@app.command(epilog="Example: odf dead-letters retry city.temperature --code WrongType")
@reporting
def retry(
    dataset: DatasetArgument,
    positions: Annotated[
        list[str] | None, typer.Argument(metavar="POSITION…", help="As listed.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that were not sent again yet.")] = False,
    code: Code = None,
    source: Source = None,
    wait: Annotated[bool, typer.Option(help="Wait for the blocks, and say what became of each.")] = True,
    timeout: Annotated[float, typer.Option(min=0, help="Give up waiting when no block came for so many seconds.")] = 60,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Send the original bytes of dead letters to their source again, say after its read step was mended.

    Each is sent once: if it still cannot be read there is a new dead letter, which can be sent again. Exit code 1 if
    there is any.
    """
    from services.cli.retrying import retried

    if not (positions or everything or code or source):
        raise typer.BadParameter("say which: positions, --code, --source or --all")
    settings = settings_of(data_dir)
    wanted = _wanted(code, source, retried=bool(positions))
    with opened_repository(settings) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))

        def letters() -> Iterator[DeadLetter]:
            found = filter(wanted, _dead_letters(settings, entry.id))
            return (letter for letter in found if not positions or letter.position in positions)

        @cache
        def dead() -> frozenset[Place]:
            return frozenset(letter.place for letter in _dead_letters(settings, entry.id))

        if positions:
            _check_all_there(positions, letters(), dataset)
        outcomes = retried(settings, repository, entry, letters, dead=dead, wait_s=timeout if wait else None)
    return _outcome_report(outcomes, output)


def _check_all_there(positions: list[str], letters: Iterable[DeadLetter], dataset: str) -> None:
    """Nothing is sent if something of what was asked for is not there."""
    missing = set(positions) - {letter.position for letter in letters}
    if missing:
        listed = ", ".join(sorted(missing))
        raise NotFoundError(f"there is no dead letter at {listed}; `odf dead-letters list {dataset} --all` shows all")


def _outcome_report(outcomes: list[Outcome], output: Format) -> Report:
    failed = [outcome for outcome in outcomes if outcome.is_failure]
    text = "\n".join(outcome.text for outcome in outcomes) or "there is nothing to send again"
    if failed and output == Format.TEXT:
        typer.echo(text)
        return Report(f"error: {len(failed)} of {len(outcomes)} were not taken", {}, exit_code=1)
    data = {"letters": [outcome.document() for outcome in outcomes]}
    return Report(text, data, exit_code=1 if failed else 0)


def _id_of(settings: Settings, dataset: str) -> DatasetId:
    with opened_repository(settings) as repository:
        return repository.catalog.dataset(parsed_ref(dataset)).id


def _dead_letters(settings: Settings, dataset_id: DatasetId) -> Iterator[DeadLetter]:
    from odf_common.endpoints import bootstrap_servers
    from services.cli.dead_letter_topic import dead_letters
    from services.cli.topic_reading import opened_consumer

    with opened_consumer(bootstrap_servers(settings)) as reader:
        yield from dead_letters(reader, dataset_id)


def _wanted(code: str | None, source: str | None, *, retried: bool) -> Callable[[DeadLetter], bool]:
    def is_wanted(letter: DeadLetter) -> bool:
        note = letter.note
        return code in (None, note.code) and source in (None, note.source_name) and (retried or not letter.attempts)

    return is_wanted


def _document(letter: DeadLetter) -> dict[str, Any]:
    note = letter.note.model_dump(mode="json", by_alias=True, exclude_none=True)
    return note | {
        "position": letter.position,
        "attempts": letter.attempts,
        "size": len(letter.value),
        "value": letter.value.decode("utf-8", "replace"),
    }


def _line(letter: DeadLetter) -> str:
    value = letter.value[:_SHOWN_BYTES].decode("utf-8", "replace")
    more = "…" if len(letter.value) > _SHOWN_BYTES else ""
    note = letter.note
    reason = f"{note.code}: {printable(note.reason)}"
    again = f"  (sent again {letter.attempts} times)" if letter.attempts else ""
    return f"{note.source_name}  {letter.position}  {note.timestamp}  {reason}{again}  {printable(value)}{more}"
