"""Builders: messages of a topic and plans of sources, with defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from odf_common.ingest.messages import MESSAGES, Unreadable
from odf_common.ingest.source import SourcePlan
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import MergeStrategy, MergeStrategyAppend, ReadStep, ReadStepNdJson
from odf_common.timestamp import Timestamp

NOW = Timestamp.parse("2024-01-01T00:00:00Z")
KAFKA_TIME_US = 1_700_000_000_000_000
COLUMNS = ("event_time TIMESTAMP", "city STRING", "population BIGINT")


def messages(*values: bytes | None, start: int = 0) -> pa.Table:
    """Messages of one partition, a millisecond apart."""
    numbers = range(start, start + len(values))
    times = [KAFKA_TIME_US + number * 1000 for number in numbers]
    columns = [[0] * len(values), list(numbers), times, list(values), [None] * len(values)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, MESSAGES, strict=True)], schema=MESSAGES)


def plan(
    read: ReadStep | None = None,
    *,
    merge: MergeStrategy | None = None,
    data_schema: pa.Schema | None = None,
    vocabulary: DatasetVocabulary | None = None,
    **source: Any,
) -> SourcePlan:
    """A plan for NDJSON of `COLUMNS`, unless told otherwise."""
    event = AddPushSource(
        source_name="default",
        read=read or ReadStepNdJson(ddl_schema=COLUMNS),
        merge=merge or MergeStrategyAppend(),
        **source,
    )
    return SourcePlan.of(event, vocabulary or DatasetVocabulary(), data_schema)


class KeysInMemory:
    """A KeyIndex of a few keys."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self._keys = set(keys)

    def contains(self, keys: Sequence[bytes]) -> Sequence[bool]:
        return [key in self._keys for key in keys]


def letters(unreadable: Sequence[Unreadable]) -> list[tuple[int, int | None, str]]:
    """Where the dead letters are and what they are about."""
    return [(letter.offset, letter.index, letter.code) for letter in unreadable]
