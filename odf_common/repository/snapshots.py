"""From a DatasetSnapshot to a dataset, and to the events that bring an existing one in line with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odf_common.catalog.errors import NameTakenError, TopicTakenError
from odf_common.catalog.records import SourceSettings
from odf_common.catalog.transaction import CatalogTransaction
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import DEFAULT_SOURCE_NAME, ChainState, logical_schema
from odf_common.errors import NotFoundError, OdfError
from odf_common.identity.did import DatasetId
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.ingest.errors import BadInputSchemaError, UnsupportedSourceError
from odf_common.ingest.queries import check_preprocess, normalized
from odf_common.metadata.events import (
    AddPushSource,
    DatasetKind,
    MetadataEvent,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
)
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.manifests import DatasetSnapshot
from odf_common.metadata.transforms import TransformInput
from odf_common.repository.appending import sealed
from odf_common.repository.bindings import DEFAULT_SETTINGS, bind_source
from odf_common.repository.repository import Dataset, Repository
from odf_common.timestamp import Timestamp

_ANY_KIND = (SetAttachments, SetInfo, SetLicense, SetDataSchema, SetVocab)
_ROOT_ONLY = (SetPollingSource, AddPushSource)


class DatasetSnapshotRefusedError(OdfError):
    """A snapshot cannot become a dataset: mend the manifest."""


def create_from_snapshot(
    repository: Repository,
    snapshot: DatasetSnapshot,
    *,
    system_time: Timestamp,
    key_pair: KeyPair,
    settings: SourceSettings = DEFAULT_SETTINGS,
    topic: str | None = None,
) -> Dataset:
    """Make a dataset of a snapshot: its chain, its place in the catalog and the topics of its sources.

    All becomes visible together or not at all. `topic` names that of a single source. DatasetSnapshotRefusedError
    and UnsupportedSourceError say what is wrong with the snapshot; NameTakenError and
    TopicTakenError what is taken.
    """
    _check_free(repository, snapshot.name)
    events = snapshot_events(repository, snapshot)
    sources = list(dict.fromkeys(_source_names(events)))
    if topic is not None and len(sources) != 1:
        raise DatasetSnapshotRefusedError(
            f"{snapshot.name} has {len(sources)} push sources, a topic can be given for a single one only"
        )
    dataset_id = key_pair.dataset_id
    folder = repository.folder(dataset_id)
    chain = MetadataChain(folder.objects, folder.refs)
    seed = Seed(dataset_id=dataset_id, dataset_kind=snapshot.kind)
    staged = chain.stage(sealed(ChainState(), [seed, *events], system_time))

    def bind(transaction: CatalogTransaction) -> None:
        for source in sources:
            bind_source(transaction, dataset_id, snapshot.name, source, settings=settings, topic=topic)

    try:
        dataset = repository.create(dataset_id, snapshot.name, snapshot.kind, head=staged.hashes[-1], within=bind)
    except (NameTakenError, TopicTakenError):
        repository.root.remove(dataset_id.multibase)
        raise
    chain.moved(staged)
    return dataset


def snapshot_events(repository: Repository, snapshot: DatasetSnapshot) -> list[MetadataEvent]:
    """The events of a snapshot as a chain holds them, each of them allowed, resolved and checked."""
    for event in snapshot.metadata:
        _check_allowed(event, snapshot.kind)
    events = [_resolved(repository, event) for event in normalized_events(snapshot.metadata)]
    check_sources(events, _vocabulary(events, DatasetVocabulary()))
    return events


def normalized_events(events: Sequence[MetadataEvent]) -> Iterator[MetadataEvent]:
    """The same events with their transforms in the form that a chain holds."""
    for event in events:
        match event:
            case SetTransform():
                yield event.model_copy(update={"transform": normalized(event.transform)})
            case AddPushSource() | SetPollingSource() if event.preprocess is not None:
                yield event.model_copy(update={"preprocess": normalized(event.preprocess)})
            case _:
                yield event


def check_sources(events: Sequence[MetadataEvent], vocabulary: DatasetVocabulary) -> None:
    """Refuse push sources that could not be read here, with the name of the source in the message."""
    from odf_common.ingest.source import check_source

    for event in events:
        if isinstance(event, AddPushSource):
            try:
                check_source(event, vocabulary)
                if event.preprocess is not None:
                    check_preprocess(event.preprocess)
            except (UnsupportedSourceError, BadInputSchemaError) as error:
                raise type(error)(f"push source {event.source_name!r}: {error}") from error


def events_to_append(repository: Repository, chain: ChainState, events: Sequence[MetadataEvent]) -> list[MetadataEvent]:
    """Events of a user in the form of the chain, checked against the vocabulary that holds after them."""
    found = [_resolved(repository, event) for event in normalized_events(events)]
    check_sources(found, _vocabulary(found, chain.vocabulary))
    return found


def changes(chain: MetadataChain, wanted: Sequence[MetadataEvent]) -> list[MetadataEvent]:
    """Which of the wanted events the chain does not say already, in their order."""
    state = chain.state()
    latest = _latest_descriptions(chain)
    return [event for event in wanted if not _is_said(event, state, latest)]


def _is_said(event: MetadataEvent, state: ChainState, latest: dict[str, MetadataEvent]) -> bool:
    match event:
        case AddPushSource():
            return state.push_source(event.source_name) == event
        case SetPollingSource():
            return state.polling_source == event
        case SetTransform():
            return state.transform == event
        case SetVocab():
            said = DatasetVocabulary(**event.model_dump(exclude={"kind"}, exclude_none=True))
            return said == state.vocabulary
        case SetDataSchema():
            return logical_schema(event) == state.data_schema
        case _:
            return latest.get(event.kind) == event


def _latest_descriptions(chain: MetadataChain) -> dict[str, MetadataEvent]:
    """The newest SetInfo, SetLicense and SetAttachments: they change nothing, so no state keeps them."""
    latest: dict[str, MetadataEvent] = {}
    for encoded in chain.blocks():
        event = encoded.block.event
        if isinstance(event, SetInfo | SetLicense | SetAttachments):
            latest.setdefault(event.kind, event)
            if len(latest) == 3:
                break
    return latest


def _source_names(events: Sequence[MetadataEvent]) -> Iterator[str]:
    for event in events:
        if isinstance(event, AddPushSource):
            yield event.source_name
        elif isinstance(event, SetPollingSource):
            yield DEFAULT_SOURCE_NAME


def _check_free(repository: Repository, alias: DatasetAlias) -> None:
    """Refused before anything is written; the transaction looks again."""
    try:
        taken = repository.catalog.dataset(alias)
    except NotFoundError:
        return
    raise NameTakenError(alias, taken_by=taken.id)


def _check_allowed(event: MetadataEvent, kind: DatasetKind) -> None:
    allowed = _ROOT_ONLY if kind == DatasetKind.ROOT else (SetTransform,)
    if isinstance(event, _ANY_KIND + allowed):
        return
    if isinstance(event, (*_ROOT_ONLY, SetTransform)):
        raise DatasetSnapshotRefusedError(f"{event.kind} does not belong into a snapshot of a {kind} dataset")
    raise DatasetSnapshotRefusedError(
        f"{event.kind} does not belong into a snapshot: it comes about with the dataset's life"
    )


def _vocabulary(events: Sequence[MetadataEvent], before: DatasetVocabulary) -> DatasetVocabulary:
    vocabulary = before
    for event in events:
        if isinstance(event, SetVocab):
            vocabulary = DatasetVocabulary(**event.model_dump(exclude={"kind"}, exclude_none=True))
    return vocabulary


def _resolved(repository: Repository, event: MetadataEvent) -> MetadataEvent:
    """Inputs of transforms by id; the unknown ones are reported together."""
    if not isinstance(event, SetTransform):
        return event
    found = [(given, _dataset_id(repository, given)) for given in event.inputs]
    unknown = [str(given.dataset_ref) for given, dataset_id in found if dataset_id is None]
    if unknown:
        raise DatasetSnapshotRefusedError(f"unknown inputs: {', '.join(unknown)}; add these datasets first")
    inputs = tuple(
        TransformInput(dataset_ref=dataset_id, alias=str(given.dataset_ref) if given.alias is None else given.alias)
        for given, dataset_id in found
        if dataset_id is not None
    )
    return event.model_copy(update={"inputs": inputs})


def _dataset_id(repository: Repository, given: TransformInput) -> DatasetId | None:
    if not isinstance(given.dataset_ref, DatasetId | DatasetAlias):
        return None
    try:
        return repository.catalog.dataset(given.dataset_ref).id
    except NotFoundError:
        return None
