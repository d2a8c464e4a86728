"""The chains that are open: what each says at its head, so that a commit reads nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from odf_common.catalog.records import DatasetEntry
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import ChainState
from odf_common.errors import NotFoundError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.repository.repository import Repository
from odf_common.storage.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class OpenChain:
    """A dataset, where its objects lie, and what its chain says."""

    entry: DatasetEntry
    objects: ObjectStore
    state: ChainState


class OpenChains:
    """The chains used last. What is remembered counts only while the catalog has the head at the same block."""

    def __init__(self, repository: Repository, *, capacity: int = 2_000) -> None:
        self._repository = repository
        self._capacity = capacity
        self._open: OrderedDict[DatasetId, OpenChain] = OrderedDict()

    def heads(self, dataset_ids: Iterable[DatasetId]) -> dict[DatasetId, Multihash]:
        """Where the catalog has the heads of these datasets now; those that do not exist are left out."""
        return self._repository.catalog.heads(dataset_ids)

    def at(self, dataset_id: DatasetId, head: Multihash) -> OpenChain | None:
        """The chain at this head, or at a later one; None if the dataset was deleted just now."""
        known = self._open.get(dataset_id)
        if known is not None and known.state.head == head:
            self._open.move_to_end(dataset_id)
            return known
        try:
            dataset = self._repository.open(dataset_id)
        except NotFoundError:
            return None
        state = MetadataChain(dataset.objects, dataset.refs).state()
        if state.head is None:
            return None
        return self._remember(OpenChain(dataset.entry, dataset.objects, state))

    def moved(self, chain: OpenChain, state: ChainState) -> OpenChain:
        """Take note of what a chain says now."""
        return self._remember(OpenChain(chain.entry, chain.objects, state))

    def _remember(self, chain: OpenChain) -> OpenChain:
        self._open[chain.entry.id] = chain
        self._open.move_to_end(chain.entry.id)
        while len(self._open) > self._capacity:
            self._open.popitem(last=False)
        return chain
