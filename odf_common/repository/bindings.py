"""Binding sources to topics: publishers write to those of push sources, the poller to those of polling sources."""

from __future__ import annotations

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.errors import TopicTakenError
from odf_common.catalog.records import DatasetEntry, PushSourceBinding, SourceSettings
from odf_common.catalog.transaction import CatalogTransaction
from odf_common.chain.state import ChainState
from odf_common.errors import NotFoundError
from odf_common.identity.did import DatasetId
from odf_common.identity.references import DatasetAlias
from odf_common.kafka.topic_names import MAX_TOPIC_NAME_LENGTH, check_topic_name, default_push_topic

DEFAULT_SETTINGS = SourceSettings()

_ID_CHARACTERS = 8


def bind_source(
    transaction: CatalogTransaction,
    dataset_id: DatasetId,
    alias: DatasetAlias,
    source_name: str,
    *,
    settings: SourceSettings = DEFAULT_SETTINGS,
    topic: str | None = None,
) -> PushSourceBinding:
    """Bind a source to its topic and return the binding; TopicTakenError if another source reads the given topic.

    Without a topic it gets the default one, which ends with characters of the dataset's id where that is taken.
    """
    name = default_push_topic(alias, source_name) if topic is None else check_topic_name(topic)
    binding = PushSourceBinding(dataset_id=dataset_id, source_name=source_name, topic=name, settings=settings)
    try:
        transaction.bind_push_source(binding)
    except TopicTakenError:
        if topic is not None:
            raise
        ending = f".{dataset_id.multibase[-_ID_CHARACTERS:]}"
        return bind_source(
            transaction,
            dataset_id,
            alias,
            source_name,
            settings=settings,
            topic=name[: MAX_TOPIC_NAME_LENGTH - len(ending)] + ending,
        )
    return binding


def bind_missing_sources(catalog: Catalog, entry: DatasetEntry, chain: ChainState) -> list[PushSourceBinding]:
    """Bind the active sources of a chain that have no topic yet; returns the new bindings."""
    if not _missing({binding.source_name for binding in catalog.push_sources(entry.id)}, chain):
        return []
    with catalog.begin() as transaction:
        # Looked at again where nobody else can write: two who find the same source missing bind it once.
        bound = {binding.source_name for binding in transaction.push_sources(entry.id)}
        return [bind_source(transaction, entry.id, entry.alias, name) for name in _missing(bound, chain)]


def _missing(bound: set[str], chain: ChainState) -> list[str]:
    return [source.source_name for source in chain.sources if source.source_name not in bound]


def binding_of(catalog: Catalog, entry: DatasetEntry, source_name: str | None) -> PushSourceBinding:
    """The binding of a source, or of the only one; NotFoundError says which there are."""
    bindings = catalog.push_sources(entry.id)
    if source_name is None and len(bindings) == 1:
        return bindings[0]
    names = ", ".join(binding.source_name for binding in bindings)
    if not bindings:
        raise NotFoundError(f"dataset {entry.alias} has no push source: add one with `odf append {entry.alias} FILE`")
    if source_name is None:
        raise NotFoundError(f"dataset {entry.alias} has several push sources, name one of them: {names}")
    found = next((binding for binding in bindings if binding.source_name == source_name), None)
    if found is None:
        raise NotFoundError(f"dataset {entry.alias} has no push source {source_name!r}; it has {names}")
    return found
