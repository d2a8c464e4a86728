"""Which push sources a dataset has and where their events go, remembered for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from odf_common.catalog.records import DatasetEntry, PushSourceBinding
from odf_common.chain.state import ChainState
from odf_common.chain.summary import load_summary
from odf_common.chain.walk import decoded, walk_back
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import DatasetRef
from odf_common.metadata.events import AddPushSource, DisablePollingSource, DisablePushSource, SetPollingSource
from odf_common.repository.repository import Repository
from odf_common.storage.layout import HEAD
from odf_common.storage.ports import ObjectStore
from odf_common.wire.encoded_block import EncodedBlock
from services.gateway.errors import NotReadyError, SourceChoiceError

_MAX_REMEMBERED = 10_000

SOURCE_EVENTS = AddPushSource | DisablePushSource | SetPollingSource | DisablePollingSource
"""What changes the sources of a dataset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The push sources of a dataset at one head, and the bindings of those that have topics."""

    entry: DatasetEntry
    head: Multihash | None
    active: tuple[AddPushSource, ...]
    is_polled: bool
    bindings: dict[str, PushSourceBinding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a payload goes."""

    entry: DatasetEntry
    source: AddPushSource
    topic: str
    is_enabled: bool
    """Whether the source is read at the moment."""


def choose(sources: Sources, name: str | None) -> Target:
    """The named push source, or the only one."""
    source = _source(sources, name)
    binding = sources.bindings.get(source.source_name)
    if binding is None:
        raise NotReadyError(
            f"source {source.source_name!r} of {sources.entry.alias} has no topic yet: "
            "the ingest job binds new sources while it runs"
        )
    return Target(entry=sources.entry, source=source, topic=binding.topic, is_enabled=binding.settings.enabled)


def _source(sources: Sources, name: str | None) -> AddPushSource:
    names = ", ".join(repr(source.source_name) for source in sources.active)
    if sources.is_polled:
        raise SourceChoiceError(
            f"dataset {sources.entry.alias} has a polling source: it fetches its data by itself and takes no pushes. "
            f"`odf pull {sources.entry.alias}` fetches now"
        )
    if not sources.active:
        raise SourceChoiceError(f"dataset {sources.entry.alias} has no active push source")
    if name is None:
        if len(sources.active) > 1:
            raise SourceChoiceError(f"explicit source name is required: say ?sourceName= with one of {names}")
        return sources.active[0]
    found = next((source for source in sources.active if source.source_name == name), None)
    if found is None:
        raise SourceChoiceError(f"source not found: dataset {sources.entry.alias} has {names}")
    return found


class SourceLookup:
    """Reads sources from catalog and chain. Safe to share between threads: what two find out at once is the same."""

    def __init__(self, repository: Repository, *, keep_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._repository = repository
        self._keep_s = keep_s
        self._clock = clock
        self._remembered: dict[DatasetRef, tuple[float, Sources]] = {}
        # What is known of a chain stays true for its head, so only newer blocks are read.
        self._chains: dict[DatasetId, ChainState] = {}

    def remembered(self, ref: DatasetRef) -> Sources | None:
        """What was found a moment ago; touches no storage."""
        found = self._remembered.get(ref)
        return found[1] if found is not None and self._clock() < found[0] else None

    def find(self, ref: DatasetRef) -> Sources:
        """The dataset's sources; NotFoundError if there is no such dataset. Reads storage: call it in a thread."""
        now = self._clock()
        entry = self._repository.catalog.dataset(ref)
        head = self._repository.catalog.ref(entry.id, HEAD)
        bindings = self._repository.catalog.push_sources(entry.id)
        chain = self._chain(entry, head)
        sources = Sources(
            entry=entry,
            head=head,
            active=chain.push_sources,
            is_polled=chain.polling_source is not None,
            bindings={binding.source_name: binding for binding in bindings},
        )
        if len(self._remembered) >= _MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered[ref] = (now + self._keep_s, sources)
        return sources

    def forget(self, dataset_id: DatasetId) -> None:
        """The dataset's sources have changed."""
        for ref, (_, sources) in list(self._remembered.items()):
            if sources.entry.id == dataset_id:
                self._remembered.pop(ref, None)

    def _chain(self, entry: DatasetEntry, head: Multihash | None) -> ChainState:
        """What the chain says of sources; nothing else of it is kept up to date."""
        if head is None:
            return ChainState()
        objects = self._repository.folder_of(entry).objects
        known = self._chains.get(entry.id) or load_summary(objects) or ChainState()
        if known.head != head:
            known = _with_sources_up_to(objects, known, head)
        if len(self._chains) >= _MAX_REMEMBERED:
            self._chains.clear()
        self._chains[entry.id] = known
        return known


def _with_sources_up_to(objects: ObjectStore, known: ChainState, head: Multihash) -> ChainState:
    """The state with later changes of sources, and nothing else: schemas, for one, are costly to read."""
    changes: list[EncodedBlock] = []
    oldest: EncodedBlock | None = None
    for stored in walk_back(objects, head, until=known.head):
        oldest = decoded(stored)
        if isinstance(oldest.block.event, SOURCE_EVENTS):
            changes.append(oldest)
    if oldest is not None and oldest.block.prev_block_hash != known.head:
        known = ChainState()  # the walk came to the chain's beginning: what was known is of another chain
    for change in reversed(changes):
        known = known.followed_by(change.block, change.hash)
    return known.model_copy(update={"head": head})
