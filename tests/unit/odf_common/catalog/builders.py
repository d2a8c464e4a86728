"""Datasets and hashes with defaults, so that a test shows only what matters."""

from __future__ import annotations

from odf_common.catalog.catalog import Catalog
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import DatasetKind


def a_hash(number: int) -> Multihash:
    return sha3_256(number.to_bytes(8))


def an_id(number: int) -> DatasetId:
    return DatasetId(number.to_bytes(32))


def an_alias(text: str) -> DatasetAlias:
    return DatasetAlias.parse(text)


def add_dataset(catalog: Catalog, number: int = 1, alias: str | None = None) -> DatasetId:
    """Make a dataset known that has no ref yet."""
    dataset_id = an_id(number)
    with catalog.begin() as transaction:
        name = an_alias(alias or f"dataset-{number}")
        transaction.add_dataset(dataset_id, name, DatasetKind.ROOT, location=dataset_id.multibase)
    return dataset_id
