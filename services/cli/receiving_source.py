"""The source that files are sent to: chosen as the chain says, made where that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odf_common.chain.state import ChainState
from odf_common.errors import NotFoundError, OdfError

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.metadata.events import AddPushSource
    from odf_common.repository.repository import Repository

AUTO_SOURCE = "auto"
"""The name of sources that come about with their first file."""


class SourceDisabledError(OdfError):
    """The source is switched off: nothing would read what is sent."""


class NoMediaTypeError(OdfError):
    """Nothing says which format a file has."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A push source and its topic."""

    source: AddPushSource
    binding: PushSourceBinding
    was_read: bool
    """Whether the chain has something of its topic."""

    @classmethod
    def of(
        cls,
        repository: Repository,
        entry: DatasetEntry,
        name: str | None,
        *,
        create_for: tuple[Sequence[Path], str | None] | None = None,
    ) -> Receiver:
        """The receiver of that name, or the only one.

        `create_for` are files and their media type, for which a source is added if the dataset has none.
        """
        from services.cli.opening import chain_of

        chain = chain_of(repository.open(entry.id))
        state = chain.state()
        if create_for is not None and not state.sources:
            _create_source(repository, entry, *create_for, name)
            state = chain.state()
        source = receiving_source(state, entry, name)
        binding = binding_of_source(repository, entry, state, source.source_name)
        return cls(source, binding, state.source_state(source.source_name) is not None)

    def ensure_topic(self, servers: str) -> None:
        """Make the topic of a new source, if the running system has not come to it yet."""
        from services.cli.producing import ensure_topic

        ensure_topic(servers, self.binding, was_read=self.was_read)


def receiving_source(state: ChainState, entry: DatasetEntry, name: str | None) -> AddPushSource:
    """The push source of that name, or the only active one; NotFoundError says what there is."""
    if state.polling_source is not None:
        raise NotFoundError(f"{entry.alias} fetches its data itself: `odf pull {entry.alias}` does it now")
    names = ", ".join(source.source_name for source in state.push_sources)
    if not names:
        raise NotFoundError(
            f"{entry.alias} has no push source: add one with `odf append {entry.alias} FILE`, or let "
            "--create-source add one that appends what files of this format hold"
        )
    if name is None:
        if len(state.push_sources) > 1:
            raise NotFoundError(f"{entry.alias} has several push sources, name one with --source: {names}")
        return state.push_sources[0]
    found = state.push_source(name)
    if found is None:
        raise NotFoundError(f"{entry.alias} has no active push source {name!r}; it has {names}")
    return found


def binding_of_source(repository: Repository, entry: DatasetEntry, state: ChainState, name: str) -> PushSourceBinding:
    """The topic of an active source, bound now if nobody did it before; SourceDisabledError if it is switched off."""
    from odf_common.repository.bindings import bind_missing_sources, binding_of

    bind_missing_sources(repository.catalog, entry, state)
    binding = binding_of(repository.catalog, entry, name)
    if not binding.settings.enabled:
        raise SourceDisabledError(
            f"source {name!r} is switched off, nothing reads its topic: `odf source enable {entry.alias} {name}`"
        )
    return binding


def _create_source(
    repository: Repository, entry: DatasetEntry, files: Sequence[Path], media_type: str | None, name: str | None
) -> None:
    """Add a source that appends what files of this format hold, unless the dataset has a source already."""
    from odf_common.ingest.media_types import default_step
    from odf_common.metadata.events import AddPushSource
    from odf_common.metadata.sources import MergeStrategyAppend
    from odf_common.repository.appending import append_events
    from odf_common.timestamp import Timestamp
    from services.cli.payloads import media_type_of

    found = media_type or next(filter(None, map(media_type_of, files)), None)
    if found is None:
        raise NoMediaTypeError("the files' names do not tell their format: say it with --media-type")
    source = AddPushSource(source_name=name or AUTO_SOURCE, read=default_step(found), merge=MergeStrategyAppend())
    append_events(repository, entry.id, lambda chain: [] if chain.sources else [source], Timestamp.now())
