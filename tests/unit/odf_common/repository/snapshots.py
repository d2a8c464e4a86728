"""Snapshots for tests."""

from __future__ import annotations

from typing import Any

from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import AddPushSource, DatasetKind, MetadataEvent
from odf_common.metadata.manifests import DatasetSnapshot
from odf_common.metadata.sources import MergeStrategyAppend, ReadStepNdJson
from odf_common.repository.repository import Dataset, Repository
from odf_common.repository.snapshots import create_from_snapshot
from odf_common.timestamp import Timestamp

NOON = Timestamp.parse("2020-01-01T12:00:00Z")


def a_source(name: str = "default", **more: Any) -> AddPushSource:
    fields = {
        "read": ReadStepNdJson(ddl_schema=("event_time TIMESTAMP", "city STRING")),
        "merge": MergeStrategyAppend(),
    }
    return AddPushSource(source_name=name, **(fields | more))


def a_snapshot(*events: MetadataEvent, name: str = "city", kind: DatasetKind = DatasetKind.ROOT) -> DatasetSnapshot:
    return DatasetSnapshot(name=DatasetAlias.parse(name), kind=kind, metadata=events)


def create(repository: Repository, snapshot: DatasetSnapshot, *, seed: int = 1, **more: Any) -> Dataset:
    pair = KeyPair.from_seed(seed.to_bytes(32))
    return create_from_snapshot(repository, snapshot, system_time=NOON, key_pair=pair, **more)
