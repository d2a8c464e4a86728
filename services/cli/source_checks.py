"""What is wrong with events that change where a dataset's data comes from, found before any data arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odf_common.chain.state import ChainState, as_push_source
from odf_common.errors import AppendRefusedError, OdfError
from odf_common.metadata.events import AddPushSource, MetadataEvent, SetPollingSource, SetVocab
from odf_common.metadata.fragments import DatasetVocabulary

if TYPE_CHECKING:
    import pyarrow as pa


class SystemColumnsInUseError(AppendRefusedError):
    """A vocabulary renames columns that the dataset's slices have already."""


def check_events(chain: ChainState, events: Sequence[MetadataEvent]) -> None:
    """Raise what is wrong with new sources or a new vocabulary on top of a chain.

    UnsupportedSourceError, BadInputSchemaError and what fetching refuses are about the source itself,
    IncompatibleSchemaError is about the columns that the dataset has, which may only become more.
    """
    sources = [source for event in events if (source := _source(event)) is not None]
    vocabularies = [event for event in events if isinstance(event, SetVocab)]
    if not sources and not vocabularies:
        return
    schema = _columns(chain)
    vocabulary = chain.vocabulary
    for vocab in vocabularies:
        vocabulary = _checked_vocabulary(vocab, vocabulary, schema)
    active = {source.source_name: source for source in (*chain.sources, *sources)}
    for event in events:
        source = _source(event)
        if source is None:
            continue
        others = [other for name, other in active.items() if name != source.source_name]
        try:
            _check(event, source, vocabulary, schema, others)
        except OdfError as error:
            kind = "polling source" if isinstance(event, SetPollingSource) else f"push source {source.source_name!r}"
            raise type(error)(f"{kind}: {error}") from error


def _source(event: MetadataEvent) -> AddPushSource | None:
    match event:
        case AddPushSource():
            return event
        case SetPollingSource():
            return as_push_source(event)
        case _:
            return None


def _columns(chain: ChainState) -> pa.Schema | None:
    from odf_common.data.arrow_types import to_arrow

    return None if chain.data_schema is None else to_arrow(chain.data_schema)


def _check(
    event: MetadataEvent,
    source: AddPushSource,
    vocabulary: DatasetVocabulary,
    schema: pa.Schema | None,
    others: Sequence[AddPushSource],
) -> None:
    from odf_common.ingest.evolution import check_evolution
    from odf_common.ingest.queries import check_preprocess

    if isinstance(event, SetPollingSource):
        _check_fetch(event)
    if source.preprocess is not None:
        check_preprocess(source.preprocess)
    check_evolution(source, vocabulary, schema, others=others)


def _check_fetch(event: SetPollingSource) -> None:
    from services.poller.checks import check_fetch
    from services.poller.settings import PollerSettings

    check_fetch(event, PollerSettings())


def _checked_vocabulary(event: SetVocab, before: DatasetVocabulary, schema: pa.Schema | None) -> DatasetVocabulary:
    """The vocabulary that an event sets. Once there is data, the columns that carry it keep their names."""
    after = DatasetVocabulary(**event.model_dump(exclude={"kind"}, exclude_none=True))
    names = [getattr(after, name) for name in DatasetVocabulary.model_fields]
    if len(set(names)) < len(names):
        raise SystemColumnsInUseError(f"SetVocab gives two system columns one name: {', '.join(names)}")
    if schema is None:
        return after
    for name in ("offset_column", "operation_type_column", "system_time_column"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            raise SystemColumnsInUseError(
                f"SetVocab renames the system column {old!r} to {new!r}, but the dataset has data: columns are never "
                "removed or renamed. An event that leaves a name out sets it back to its default; name all that differ"
            )
    column = after.event_time_column
    if column in schema.names and not _is_time(schema.field(column).type):
        raise SystemColumnsInUseError(
            f"SetVocab makes {column!r} the event time column, but in the dataset it is {schema.field(column).type}: "
            "it must be a DATE or TIMESTAMP"
        )
    return after


def _is_time(data_type: pa.DataType) -> bool:
    from pyarrow.types import is_date, is_timestamp

    return bool(is_date(data_type) or is_timestamp(data_type))
