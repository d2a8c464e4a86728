"""How a store gets to know what the chain has and it has not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from streaming_jobs.ingest.state.slices import Unread, read_rows, unread_slices
from streaming_jobs.ingest.state.store import Mark, Store

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.metadata.fragments import DatasetVocabulary
    from odf_common.storage.ports import ObjectStore

_ROWS = 500_000
_SIZE = 96 << 20  # bytes

_log = structlog.get_logger(__name__)


def up_to_date(store: Store, chain: MetadataChain, vocabulary: DatasetVocabulary) -> tuple[Store, list[Unread]]:
    """The store and what it has to read; an empty store and everything if what it has read is not in the chain."""
    unread = unread_slices(chain, store.mark, vocabulary)
    if unread is None:
        _log.warning("state does not belong to the chain as it is: making it anew", path=str(store.path))
        store = store.emptied()
        unread = unread_slices(chain, store.mark, vocabulary) or []
    return store, unread


@dataclass
class Portion:
    """Rows of one or several slices, in the order of their offsets, as many as are worth a write."""

    tables: list[pa.Table] = field(default_factory=list)
    mark: Mark = field(default_factory=Mark)
    """For when they are written."""

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(table.num_rows for table in self.tables)


def portions(
    objects: ObjectStore,
    unread: Iterable[Unread],
    mark: Mark,
    vocabulary: DatasetVocabulary,
    columns: Sequence[str] | None = None,
) -> Iterator[Portion]:
    """The rows of slices, in memory that does not grow with them."""
    tables: list[pa.Table] = []
    rows = size = 0
    for each in unread:
        for batch in read_rows(objects, each, vocabulary, columns):
            if tables and (rows >= _ROWS or size >= _SIZE):
                yield Portion(_joined(tables), mark)
                tables, rows, size = [], 0, 0
            tables.append(pa.Table.from_batches([batch]))
            rows, size = rows + batch.num_rows, size + batch.nbytes
            mark = mark.within(each.hash)
        mark = Mark(each.next_offset, each.hash)
    if tables:
        yield Portion(_joined(tables), mark)


def _joined(tables: list[pa.Table]) -> list[pa.Table]:
    """The same rows; neighbours of one schema become one table."""
    joined: list[list[pa.Table]] = []
    for table in tables:
        if joined and joined[-1][0].schema.equals(table.schema):
            joined[-1].append(table)
        else:
            joined.append([table])
    return [pa.concat_tables(some).combine_chunks() for some in joined]
