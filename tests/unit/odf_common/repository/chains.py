"""Short chains of real blocks for the tests of repositories."""

from __future__ import annotations

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import DatasetKind, MetadataEvent, Seed, SetInfo
from odf_common.metadata.manifests import MetadataBlock
from odf_common.repository.repository import Dataset, Repository
from odf_common.storage.ports import ObjectStore
from odf_common.timestamp import Timestamp
from odf_common.wire.encode import encode_block

NOON = Timestamp.parse("2020-01-01T12:00:00Z")


def an_id(number: int) -> DatasetId:
    return DatasetId(number.to_bytes(32))


def put_event(objects: ObjectStore, event: MetadataEvent, *, after: Multihash | None, number: int) -> Multihash:
    block = MetadataBlock(system_time=NOON, prev_block_hash=after, sequence_number=number, event=event)
    data = encode_block(block)
    block_hash = sha3_256(data)
    objects.put_block(block_hash, data)
    return block_hash


def put_block(objects: ObjectStore, *, after: Multihash, text: str) -> Multihash:
    """Any block that continues a chain."""
    return put_event(objects, SetInfo(description=text), after=after, number=1)


def put_seed(objects: ObjectStore, dataset_id: DatasetId, kind: DatasetKind = DatasetKind.ROOT) -> Multihash:
    return put_event(objects, Seed(dataset_id=dataset_id, dataset_kind=kind), after=None, number=0)


def create(repository: Repository, number: int, alias: str, kind: DatasetKind = DatasetKind.ROOT) -> Dataset:
    """A dataset of a Seed and another block."""
    dataset_id = an_id(number)
    objects = repository.folder(dataset_id).objects
    head = put_block(objects, after=put_seed(objects, dataset_id, kind), text=alias)
    return repository.create(dataset_id, DatasetAlias.parse(alias), kind, head=head)


def append(dataset: Dataset, text: str) -> Multihash:
    """Add a block and move the head to it."""
    head = dataset.refs.get("head")
    assert head is not None
    new = put_block(dataset.objects, after=head, text=text)
    dataset.refs.compare_and_set("head", expected=head, new=new)
    return new
