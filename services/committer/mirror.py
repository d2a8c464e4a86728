"""Files that may lag behind: the refs' files and the summaries of chains, written when there is time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from odf_common.chain.summary import save_summary
from odf_common.identity.did import DatasetId
from odf_common.repository.repository import Repository
from odf_common.storage.layout import HEAD
from services.committer.chains import OpenChain


@dataclass(frozen=True, slots=True)
class _Lagging:
    chain: OpenChain
    since: float


class Mirror:
    """What lags, the longest lagging first. Only the newest state of a dataset counts."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._lagging: dict[DatasetId, _Lagging] = {}

    def __bool__(self) -> bool:
        return bool(self._lagging)

    def lag(self, chain: OpenChain, *, now: float) -> None:
        """A chain has moved on from its files."""
        known = self._lagging.get(chain.entry.id)
        self._lagging[chain.entry.id] = _Lagging(chain, now if known is None else known.since)

    def write(self, *, older_than: float, seconds: float = float("inf")) -> None:
        """Write the files that lag since before `older_than`; after so many seconds leave the rest for later."""
        end = time.monotonic() + seconds
        while self._lagging:
            dataset_id, lagging = next(iter(self._lagging.items()))
            if lagging.since > older_than or time.monotonic() > end:
                return
            del self._lagging[dataset_id]
            self._repository.mirror(lagging.chain.entry, HEAD)
            save_summary(lagging.chain.objects, lagging.chain.state)
