"""Datasets that have long chains already."""

from __future__ import annotations

from benchmarks.streaming.system import SOURCE, opened
from odf_common.catalog.records import SourceSettings
from odf_common.catalog.transaction import CatalogTransaction
from odf_common.chain.state import ChainState, next_block
from odf_common.identity.did import DatasetId
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import AddData, DatasetKind, MetadataEvent, Seed
from odf_common.repository.bindings import bind_source
from odf_common.settings import Settings
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import seal

_START = Timestamp.parse("2020-01-01T00:00:00Z")


def add_dataset_with_blocks(
    settings: Settings, name: str, topic: str, source_settings: SourceSettings, *, blocks: int
) -> DatasetId:
    """A dataset whose source reads a topic, and that has so many blocks, most of them of watermarks alone."""
    dataset_id, alias = KeyPair.generate().dataset_id, DatasetAlias.parse(name)

    def bind(transaction: CatalogTransaction) -> None:
        bind_source(transaction, dataset_id, alias, SOURCE.source_name, settings=source_settings, topic=topic)

    with opened(settings) as repository:
        objects = repository.folder(dataset_id).objects
        chain = ChainState()
        for number in range(blocks):
            block = seal(next_block(chain, _event(dataset_id, number), system_time=_START.plus_seconds(number)))
            objects.put_block(block.hash, block.data)
            chain = chain.followed_by(block.block, block.hash)
        assert chain.head is not None
        repository.create(dataset_id, alias, DatasetKind.ROOT, head=chain.head, within=bind)
    return dataset_id


def _event(dataset_id: DatasetId, number: int) -> MetadataEvent:
    match number:
        case 0:
            return Seed(dataset_id=dataset_id, dataset_kind=DatasetKind.ROOT)
        case 1:
            return SOURCE
        case _:
            return AddData(new_watermark=_START.plus_seconds(number))
