from __future__ import annotations

import pytest

from odf_common.catalog.errors import NameTakenError, TopicTakenError
from odf_common.catalog.records import REF_MOVED, SourceSettings
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.errors import NotFoundError
from odf_common.identity.references import DatasetAlias, parse_ref_any
from odf_common.ingest.errors import BadInputSchemaError, UnsupportedSourceError
from odf_common.metadata.events import (
    AddData,
    DatasetKind,
    DisablePushSource,
    MetadataEvent,
    Seed,
    SetInfo,
    SetLicense,
    SetTransform,
    SetVocab,
)
from odf_common.metadata.sources import MergeStrategySnapshot
from odf_common.metadata.transforms import SqlQueryStep, TransformInput, TransformSql
from odf_common.repository import snapshots
from odf_common.repository.repository import Dataset, Repository
from odf_common.repository.snapshots import DatasetSnapshotRefusedError
from tests.unit.odf_common.repository.chains import an_id
from tests.unit.odf_common.repository.snapshots import NOON, a_snapshot, a_source, create

QUERY = TransformSql(engine="spark", query="SELECT * FROM input")
LICENSE = SetLicense(short_name="CC0", name="Creative Commons Zero", website_url="https://example.org")


def events_of(dataset: Dataset) -> list[MetadataEvent]:
    blocks = list(MetadataChain(dataset.objects, dataset.refs).blocks())
    assert {encoded.block.system_time for encoded in blocks} == {NOON}
    return [encoded.block.event for encoded in reversed(blocks)]


def a_transform(*inputs: TransformInput) -> SetTransform:
    return SetTransform(inputs=inputs, transform=QUERY)


def an_input(ref: str, alias: str | None = None) -> TransformInput:
    return TransformInput(dataset_ref=parse_ref_any(ref), alias=alias)


def test_the_chain_begins_with_a_seed_and_holds_the_events_in_their_order(repository: Repository) -> None:
    dataset = create(repository, a_snapshot(SetInfo(description="x"), a_source(), LICENSE))
    seed = Seed(dataset_id=dataset.entry.id, dataset_kind=DatasetKind.ROOT)
    assert events_of(dataset) == [seed, SetInfo(description="x"), a_source(), LICENSE]


def test_the_head_moves_once_and_topics_are_bound_with_it(repository: Repository) -> None:
    settings = SourceSettings(partitions=4)
    dataset = create(repository, a_snapshot(a_source("one"), a_source("two")), settings=settings)
    moves = [each for each in repository.catalog.pending_journal(limit=10) if each.record.kind == REF_MOVED]
    assert len(moves) == 1
    bindings = repository.catalog.push_sources(dataset.entry.id)
    assert [(each.source_name, each.topic, each.settings) for each in bindings] == [
        ("one", "odf.push.city.one", settings),
        ("two", "odf.push.city.two", settings),
    ]


def test_queries_are_brought_into_the_form_of_a_chain(repository: Repository) -> None:
    dataset = create(repository, a_snapshot(a_source(preprocess=QUERY)))
    normal = TransformSql(engine="spark", queries=(SqlQueryStep(query="SELECT * FROM input"),))
    assert events_of(dataset)[1] == a_source(preprocess=normal)


def test_inputs_become_ids_and_keep_their_names_as_aliases(repository: Repository) -> None:
    city = create(repository, a_snapshot(name="city")).entry.id
    transform = a_transform(an_input("city"))
    found = create(repository, a_snapshot(transform, name="hot", kind=DatasetKind.DERIVATIVE), seed=2)
    (resolved,) = [event for event in events_of(found) if isinstance(event, SetTransform)]
    assert resolved.inputs == (TransformInput(dataset_ref=city, alias="city"),)


def test_unknown_inputs_are_reported_together(repository: Repository) -> None:
    transform = a_transform(an_input("a"), an_input(str(an_id(9))), an_input("https://example.org/x"))
    with pytest.raises(DatasetSnapshotRefusedError, match=f"a, {an_id(9)}, https://example.org/x"):
        create(repository, a_snapshot(transform, kind=DatasetKind.DERIVATIVE))


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (Seed(dataset_id=an_id(1), dataset_kind=DatasetKind.ROOT), DatasetKind.ROOT),
        (AddData(new_watermark=NOON), DatasetKind.ROOT),
        (DisablePushSource(source_name="x"), DatasetKind.ROOT),
        (a_source(), DatasetKind.DERIVATIVE),
        (a_transform(an_input("a", "a")), DatasetKind.ROOT),
    ],
)
def test_events_that_do_not_belong_are_refused(repository: Repository, event: MetadataEvent, kind: DatasetKind) -> None:
    with pytest.raises(DatasetSnapshotRefusedError, match=event.kind):
        create(repository, a_snapshot(event, kind=kind))
    assert list(repository.datasets()) == []


@pytest.mark.parametrize(
    "source",
    [
        a_source("wrong", merge=MergeStrategySnapshot(primary_key=())),
        a_source("wrong", preprocess=TransformSql(engine="flink", query="SELECT 1")),
        a_source("wrong", preprocess=TransformSql(engine="spark", query="SELECT * FROM csv.`/x`")),
    ],
)
def test_sources_that_could_not_be_read_are_refused_by_name(repository: Repository, source: MetadataEvent) -> None:
    with pytest.raises(UnsupportedSourceError, match="push source 'wrong'"):
        create(repository, a_snapshot(source))


def test_the_vocabulary_of_the_whole_snapshot_counts(repository: Repository) -> None:
    vocabulary = SetVocab(event_time_column="city")
    with pytest.raises(BadInputSchemaError, match="city"):
        create(repository, a_snapshot(a_source(), vocabulary))


def test_a_taken_name_is_refused_before_anything_is_written(repository: Repository) -> None:
    create(repository, a_snapshot(name="city"))
    with pytest.raises(NameTakenError):
        create(repository, a_snapshot(name="CITY"), seed=2)


def test_a_topic_can_be_given_for_a_single_source(repository: Repository) -> None:
    dataset = create(repository, a_snapshot(a_source()), topic="mine")
    assert [each.topic for each in repository.catalog.push_sources(dataset.entry.id)] == ["mine"]
    with pytest.raises(DatasetSnapshotRefusedError, match="2 push sources"):
        create(repository, a_snapshot(a_source("a"), a_source("b"), name="other"), seed=2, topic="yours")


def test_a_taken_topic_leaves_nothing_behind(repository: Repository) -> None:
    create(repository, a_snapshot(a_source()), topic="mine")
    with pytest.raises(TopicTakenError):
        create(repository, a_snapshot(a_source(), name="other"), seed=2, topic="mine")
    with pytest.raises(NotFoundError):
        repository.catalog.dataset(DatasetAlias.parse("other"))
    assert len(list(repository.root.names())) == 1


def test_a_default_topic_that_is_taken_gets_characters_of_the_id(repository: Repository) -> None:
    create(repository, a_snapshot(a_source("b.c"), name="a"))
    dataset = create(repository, a_snapshot(a_source("c"), name="a.b"), seed=2)
    (binding,) = repository.catalog.push_sources(dataset.entry.id)
    assert binding.topic == f"odf.push.a.b.c.{dataset.entry.id.multibase[-8:]}"


def test_only_what_differs_is_proposed_for_a_dataset_that_exists(repository: Repository) -> None:
    dataset = create(repository, a_snapshot(a_source(), SetInfo(description="x"), LICENSE))
    chain = MetadataChain(dataset.objects, dataset.refs)
    same: list[MetadataEvent] = [a_source(), SetInfo(description="x"), SetVocab()]
    new: list[MetadataEvent] = [a_source("two"), SetInfo(description="y"), SetVocab(offset_column="o")]
    assert snapshots.changes(chain, [*same, *new]) == new
