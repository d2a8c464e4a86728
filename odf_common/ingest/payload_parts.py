"""How much of a large payload is merged at once: what a batch replaces within itself depends on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odf_common.ingest.read.records import Records
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.sources import MergeStrategyUpsertStream

PART_SIZE = 32 << 20
"""Bytes of a payload that are read at once: while one part is written the next is read, each in several forms."""

_UPSERTED_ROWS = 1_000_000


def merged_at_once(plan: SourcePlan, parts: Iterable[Records], *, batch_bytes: int) -> Iterator[Records]:
    """The records of a payload in the parts that are merged one after another. `batch_bytes` as the source has it."""
    if isinstance(plan.source.merge, MergeStrategyUpsertStream) and not plan.has_preprocess:
        # A lookup of many keys passes over all that are known: few large ones cost less than many.
        return _grouped(parts, max_rows=_UPSERTED_ROWS, max_size=batch_bytes)
    return iter(parts)


def _grouped(parts: Iterable[Records], *, max_rows: int, max_size: int) -> Iterator[Records]:
    """The same records in fewer parts, each of about so many rows or bytes."""
    some: list[Records] = []
    rows = size = 0
    for records in parts:
        some.append(records)
        rows, size = rows + records.rows.num_rows, size + records.rows.nbytes
        if rows >= max_rows or size >= max_size:
            yield Records.joined(some)
            some, rows, size = [], 0, 0
    if some:
        yield Records.joined(some)
