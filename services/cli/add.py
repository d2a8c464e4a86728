"""`odf add` and `odf append`: datasets from manifests, and events for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odf_common.errors import NotFoundError, OdfError
from services.cli.opening import DataDir, DatasetArgument, chain_of, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, failure, read_input, reporting, source_name

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry
    from odf_common.chain.state import ChainState
    from odf_common.metadata.events import MetadataEvent
    from odf_common.metadata.manifests import DatasetSnapshot
    from odf_common.repository.repository import Dataset, Repository
    from odf_common.settings import Settings

Manifests = Annotated[
    list[Path],
    typer.Argument(metavar="FILE…", help="DatasetSnapshot manifests, - for standard input.", show_default=False),
]
Events = Annotated[
    list[Path],
    typer.Argument(metavar="FILE…", help="MetadataEvent manifests, - for standard input.", show_default=False),
]


@reporting
def add(
    files: Manifests,
    partitions: Annotated[int, typer.Option(min=1, max=10_000, help="Partitions of each push source's topic.")] = 1,
    topic: Annotated[
        str | None, typer.Option(help="The topic of the push source, if there is a single one.", show_default="derived")
    ] = None,
    update: Annotated[bool, typer.Option(help="Append what differs to datasets that exist already.")] = False,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Create datasets from DatasetSnapshot manifests. Works whether or not a system runs on the data folder.

    Each push source is bound to a topic; a running system creates the topic and starts to read it at once.
    """
    settings = settings_of(data_dir)
    snapshots = [snapshot for file in files for snapshot in snapshots_in(file)]
    if not snapshots:
        return failure("NoSnapshots", f"there is no DatasetSnapshot in {', '.join(map(source_name, files))}")
    if topic is not None and len(snapshots) > 1:
        raise typer.BadParameter("it names the topic of a single dataset; add the others apart", param_hint="--topic")
    done: list[dict[str, Any]] = []
    with opened_repository(settings, create=True) as repository:
        for snapshot in snapshots:
            try:
                if (existing := _existing(repository, snapshot)) is None:
                    found = create(repository, settings, snapshot, partitions, topic)
                elif update:
                    found = _update(repository, existing, snapshot)
                else:
                    return _refused(done, "NameTaken", _taken_hint(snapshot, existing))
            except OdfError as error:
                return _refused(done, error.code, f"{snapshot.name}: {error}")
            done.append(found)
            if output == Format.TEXT:
                typer.echo(_line(found))
    return Report("", {"datasets": done})


def _refused(done: list[dict[str, Any]], code: str, message: str) -> Report:
    report = failure(code, message, datasets=done)
    return replace(report, text=f"{report.text}\n({len(done)} before it are done)") if done else report


def _taken_hint(snapshot: DatasetSnapshot, existing: DatasetEntry) -> str:
    return (
        f"{snapshot.name} exists already as {existing.id}: `odf append {snapshot.name} FILE` appends events, "
        "`odf add --update` appends what differs from the manifest"
    )


def snapshots_in(file: Path) -> Iterator[DatasetSnapshot]:
    """The snapshots of a file, one per document."""
    from odf_common.metadata.manifests import DatasetSnapshotManifest
    from odf_common.text.reader import read_documents
    from odf_common.text.validation import validate

    for document in read_documents(read_input(file), source=source_name(file)):
        yield validate(DatasetSnapshotManifest, document).content


def _existing(repository: Repository, snapshot: DatasetSnapshot) -> DatasetEntry | None:
    try:
        return repository.catalog.dataset(snapshot.name)
    except NotFoundError:
        return None


def create(
    repository: Repository,
    settings: Settings,
    snapshot: DatasetSnapshot,
    partitions: int = 1,
    topic: str | None = None,
) -> dict[str, Any]:
    """Make a dataset of a snapshot, with a new key in the data folder."""
    from odf_common.catalog.records import SourceSettings
    from odf_common.chain.state import ChainState
    from odf_common.errors import StoreUnavailableError
    from odf_common.identity.key_pair import KeyPair
    from odf_common.repository.snapshots import create_from_snapshot, normalized_events
    from odf_common.timestamp import Timestamp
    from services.cli.source_checks import check_events

    check_events(ChainState(), list(normalized_events(snapshot.metadata)))
    pair = KeyPair.generate()
    keys = settings.data_dir / "keys"
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    key_file = keys / pair.dataset_id.multibase
    pair.save(key_file)  # first: a dataset whose key got lost could never prove who it is
    try:
        dataset = create_from_snapshot(
            repository,
            snapshot,
            system_time=Timestamp.now(),
            key_pair=pair,
            settings=SourceSettings(partitions=partitions),
            topic=topic,
        )
    except StoreUnavailableError:
        raise  # it may have been created all the same
    except OdfError:
        key_file.unlink()
        raise
    return _described(repository, dataset, change="created") | {"keyFile": str(key_file)}


def _update(repository: Repository, existing: DatasetEntry, snapshot: DatasetSnapshot) -> dict[str, Any]:
    from odf_common.repository import snapshots
    from odf_common.repository.appending import append_events
    from odf_common.timestamp import Timestamp
    from services.cli.source_checks import check_events

    if existing.kind != snapshot.kind:
        raise snapshots.DatasetSnapshotRefusedError(f"the dataset is of the kind {existing.kind}, which cannot change")
    wanted = snapshots.snapshot_events(repository, snapshot)
    dataset = repository.open(existing.id)

    def decide(chain: ChainState) -> list[MetadataEvent]:
        events = snapshots.changes(chain_of(dataset), wanted)
        check_events(chain, events)
        return events

    appended = append_events(repository, existing.id, decide, Timestamp.now())
    _bind(repository, dataset)
    change = f"{len(appended)} events appended" if appended else "up to date"
    return _described(repository, dataset, change=change)


def _bind(repository: Repository, dataset: Dataset) -> None:
    from odf_common.repository.bindings import bind_missing_sources

    bind_missing_sources(repository.catalog, dataset.entry, chain_of(dataset).state())


def _described(repository: Repository, dataset: Dataset, *, change: str) -> dict[str, Any]:
    bindings = repository.catalog.push_sources(dataset.entry.id)
    return {
        "alias": str(dataset.entry.alias),
        "id": str(dataset.entry.id),
        "kind": str(dataset.entry.kind),
        "head": str(dataset.refs.get("head")),
        "change": change,
        "sources": [{"name": binding.source_name, "topic": binding.topic} for binding in bindings],
    }


def _line(found: dict[str, Any]) -> str:
    topics = "".join(f"\n  source {source['name']} reads topic {source['topic']}" for source in found["sources"])
    return f"{found['alias']}: {found['change']}, {found['id']}{topics}"


@reporting
def append(dataset: DatasetArgument, files: Events, data_dir: DataDir = None, output: Output = Format.TEXT) -> Report:
    """Append metadata events to a dataset: all of them with one move of its head, or none.

    Data events are not taken: data comes through sources. One event per document, as a MetadataEvent manifest or bare.
    """
    from odf_common.repository.appending import append_events
    from odf_common.repository.snapshots import events_to_append
    from odf_common.timestamp import Timestamp
    from services.cli.manifests import read_events
    from services.cli.source_checks import check_events

    events = [event for file in files for event in read_events(file)]
    if not events:
        return failure("NoEvents", f"there is no event in {', '.join(map(source_name, files))}")
    for event in events:
        if event.kind in _NOT_BY_HAND:
            return failure("InvalidEvent", f"{event.kind} is not appended by hand: {_NOT_BY_HAND[event.kind]}")
    with opened_repository(settings_of(data_dir)) as repository:
        ref = parsed_ref(dataset)

        def decide(chain: ChainState) -> list[MetadataEvent]:
            found = events_to_append(repository, chain, events)
            check_events(chain, found)
            return found

        hashes = [str(block) for block in append_events(repository, ref, decide, Timestamp.now())]
        _bind(repository, repository.open(ref))
    return Report("\n".join(hashes), {"appended": hashes, "head": hashes[-1]})


_NOT_BY_HAND = {
    "Seed": "`odf add` makes new datasets",
    "AddData": "data comes through push sources (`odf ingest`), watermarks by `odf watermark set`",
    "ExecuteTransform": "it is the business of transform jobs",
}
