from __future__ import annotations

import pytest

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.errors import NotFoundError
from odf_common.metadata.events import DisablePushSource
from odf_common.repository.appending import append_events
from odf_common.repository.bindings import bind_missing_sources, binding_of
from odf_common.repository.repository import Dataset, Repository
from tests.unit.odf_common.repository.snapshots import NOON, a_snapshot, a_source, create


def bind_missing(repository: Repository, dataset: Dataset) -> list[str]:
    chain = MetadataChain(dataset.objects, dataset.refs).state()
    return [each.topic for each in bind_missing_sources(repository.catalog, dataset.entry, chain)]


def test_sources_that_came_otherwise_are_bound_once(local_repository: Repository) -> None:
    dataset = create(local_repository, a_snapshot(a_source("a")))
    append_events(local_repository, dataset.entry.id, [a_source("b")], NOON)
    assert bind_missing(local_repository, dataset) == ["odf.push.city.b"]
    assert bind_missing(local_repository, dataset) == []


def test_disabled_sources_are_not_bound(local_repository: Repository) -> None:
    dataset = create(local_repository, a_snapshot())
    append_events(local_repository, dataset.entry.id, [a_source("b"), DisablePushSource(source_name="b")], NOON)
    assert bind_missing(local_repository, dataset) == []


def test_the_only_source_need_not_be_named(local_repository: Repository) -> None:
    entry = create(local_repository, a_snapshot(a_source("a"))).entry
    assert binding_of(local_repository.catalog, entry, None).source_name == "a"
    with pytest.raises(NotFoundError, match="it has a"):
        binding_of(local_repository.catalog, entry, "b")


def test_one_of_several_sources_is_named(local_repository: Repository) -> None:
    entry = create(local_repository, a_snapshot(a_source("a"), a_source("b"))).entry
    assert binding_of(local_repository.catalog, entry, "b").source_name == "b"
    with pytest.raises(NotFoundError, match="name one of them: a, b"):
        binding_of(local_repository.catalog, entry, None)


def test_a_dataset_without_sources_says_how_to_get_one(local_repository: Repository) -> None:
    entry = create(local_repository, a_snapshot()).entry
    with pytest.raises(NotFoundError, match="odf append"):
        binding_of(local_repository.catalog, entry, None)
