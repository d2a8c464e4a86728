from __future__ import annotations

import hashlib

import pytest

from odf_common.wire.decode import decode_block
from odf_common.wire.encode import encode_block
from odf_common.wire.envelope import prev_block_hash
from tests.unit.odf_common.wire.vectors import VECTORS, Vector


@pytest.fixture(params=VECTORS, ids=lambda vector: vector.name)
def vector(request: pytest.FixtureRequest) -> Vector:
    chosen: Vector = request.param
    return chosen


def test_a_block_has_the_size_and_the_hash_that_the_reference_published(vector: Vector) -> None:
    data = encode_block(vector.block, manifest_version=vector.manifest_version)
    assert len(data) == vector.size
    assert hashlib.sha3_256(data).hexdigest() == vector.sha3


def test_a_block_has_the_bytes_that_the_reference_published(vector: Vector) -> None:
    data = encode_block(vector.block, manifest_version=vector.manifest_version)
    assert vector.data is None or data.hex() == vector.data.hex()


def test_the_bytes_of_the_reference_decode_to_the_block(vector: Vector) -> None:
    data = vector.data or encode_block(vector.block, manifest_version=vector.manifest_version)
    encoded = decode_block(data)
    assert encoded.block == vector.block
    assert encoded.manifest_version == vector.manifest_version
    assert str(encoded.hash) == "f1620" + vector.sha3
    assert encoded.unknown == ()


def test_the_previous_hash_is_read_without_decoding_the_event(vector: Vector) -> None:
    data = vector.data or encode_block(vector.block, manifest_version=vector.manifest_version)
    assert prev_block_hash(data) == vector.block.prev_block_hash
