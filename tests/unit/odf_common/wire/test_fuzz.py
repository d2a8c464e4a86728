"""Whatever the bytes, decoding gives a block that can be used, or MalformedBytesError, soon and in little memory."""

from __future__ import annotations

import json
import random
import struct
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

import pytest

from odf_common.errors import MalformedBytesError
from odf_common.metadata.events import UnknownEvent
from odf_common.wire.decode import decode_block
from odf_common.wire.encode import encode_block
from odf_common.wire.envelope import open_envelope, prev_block_hash
from odf_common.wire.reader import BufferReader
from tests.unit.odf_common.metadata.documents import full_blocks
from tests.unit.odf_common.wire.hostile import BUFFERS, REGRESSIONS
from tests.unit.odf_common.wire.vectors import SEED, VECTORS

MIB = 1024 * 1024
MEMORY_PER_BYTE = 40
"""Memory that a block may take while it is decoded, for each byte of its file: JSON needs most."""

SEED_OF_CHANCE = 20_260_726

MUTANTS = 60_000
NOISES = 30_000

ODD_WORDS = [0, 1, 2, 3, 4, 8, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFF0, 0xFFFF_FFFC, 0xFFFF_FFFF]


def survives(data: bytes) -> None:
    """Decode; then everything that a service does with a block has to work."""
    try:
        encoded = decode_block(data)
    except MalformedBytesError:
        return
    assert encoded.data is data
    assert open_envelope(data).version == encoded.manifest_version
    assert prev_block_hash(data) == encoded.block.prev_block_hash
    json.dumps(encoded.block.to_document(), ensure_ascii=False, allow_nan=False).encode("utf-8")
    if not isinstance(encoded.block.event, UnknownEvent):
        assert decode_block(encode_block(encoded.block)).block == encoded.block


def all_survive(name: str, cases: Iterable[bytes]) -> int:
    """The number of cases; `pytest -s` shows how long the slowest one took."""
    count, slowest, size = 0, 0.0, 0
    for data in cases:
        count += 1
        start = time.perf_counter()
        survives(data)
        if (took := time.perf_counter() - start) > slowest:
            slowest, size = took, len(data)
    print(f"\n{name}: {count} cases, the slowest one took {slowest * 1000:.1f} ms ({size} bytes)")
    return count


@cache
def corpus() -> tuple[bytes, ...]:
    """Real blocks, small and large, of every kind."""
    published = (encode_block(vector.block, manifest_version=vector.manifest_version) for vector in VECTORS)
    return (*published, *(encode_block(block) for block in full_blocks().values()))


@cache
def small_corpus() -> tuple[bytes, ...]:
    """For what is done to every single bit."""
    return corpus()[: len(VECTORS)]


def content_of(data: bytes) -> bytes:
    return BufferReader(data).root().bytes(2) or b""


def enveloped(content: bytes) -> bytes:
    """A block file with a sound envelope: what is inside is what counts."""
    assert SEED.data is not None
    head = SEED.data[: len(SEED.data) - len(content_of(SEED.data)) - 4]
    return head + struct.pack("<I", len(content)) + content


def truncated() -> Iterator[bytes]:
    """Files cut at each length, and files whose content is."""
    for data in corpus():
        yield from (data[:size] for size in range(len(data)))
    for content in map(content_of, corpus()):
        yield from (enveloped(content[:size]) for size in range(len(content)))


def flipped() -> Iterator[bytes]:
    """Every bit of some files turned over, one at a time."""
    for data in small_corpus():
        for position in range(len(data)):
            for bit in range(8):
                yield data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


def replaced() -> Iterator[bytes]:
    """Every word of the contents made an odd number: offsets to themselves, endless counts."""
    for content in map(content_of, small_corpus()):
        for position in range(0, len(content) - 3, 2):
            for word in ODD_WORDS:
                yield enveloped(content[:position] + struct.pack("<I", word) + content[position + 4 :])


def mutated(count: int = MUTANTS) -> Iterator[bytes]:
    """Contents with several changes at random places."""
    chance = random.Random(SEED_OF_CHANCE)
    contents = [content_of(data) for data in corpus()]
    for _ in range(count):
        content = bytearray(chance.choice(contents))
        for _ in range(chance.randint(1, 6)):
            mutate(content, chance, contents)
        yield enveloped(bytes(content))


def mutate(content: bytearray, chance: random.Random, contents: list[bytes]) -> None:
    position = chance.randrange(len(content) + 1)
    match chance.randrange(6):
        case 0:
            content[position : position + 1] = chance.randbytes(1)
        case 1:
            content[position : position + 4] = struct.pack("<I", chance.choice(ODD_WORDS))
        case 2:
            content[position : position + 4] = struct.pack("<I", chance.randrange(len(content) + 8))
        case 3:
            content[position : position + 2] = struct.pack("<H", chance.randrange(64))
        case 4:
            del content[position : position + chance.randrange(16)]
        case _:
            other = chance.choice(contents)
            start = chance.randrange(len(other))
            content[position:position] = other[start : start + chance.randrange(64)]


def noise(count: int = NOISES) -> Iterator[bytes]:
    """Random bytes, as files and as contents; half of them small numbers, as offsets are."""
    chance = random.Random(SEED_OF_CHANCE)
    for number in range(count):
        size = chance.randrange(200)
        words = (chance.randrange(40) for _ in range(size // 2))
        content = chance.randbytes(size) if number % 2 else struct.pack(f"<{size // 2}H", *words)
        yield enveloped(content) if number % 4 < 2 else content


class TestAFewCases:
    """A sample of what the slow tests do, for every day."""

    def test_files_cut_anywhere(self) -> None:
        assert all_survive("cut", islice(truncated(), 0, None, 199)) > 100

    def test_files_with_a_bit_turned_over(self) -> None:
        assert all_survive("flipped", islice(flipped(), 0, None, 97)) > 200

    def test_files_with_an_odd_word(self) -> None:
        assert all_survive("replaced", islice(replaced(), 0, None, 97)) > 100

    def test_files_with_random_changes(self) -> None:
        assert all_survive("mutated", mutated(300)) == 300

    def test_random_bytes(self) -> None:
        assert all_survive("noise", noise(300)) == 300


@pytest.mark.slow
class TestManyCases:
    """A hundred thousand and more."""

    def test_files_cut_anywhere(self) -> None:
        assert all_survive("cut", truncated()) == sum(len(data) + len(content_of(data)) for data in corpus())

    def test_files_with_a_bit_turned_over(self) -> None:
        assert all_survive("flipped", flipped()) == 8 * sum(map(len, small_corpus()))

    def test_files_with_an_odd_word(self) -> None:
        assert all_survive("replaced", replaced()) > 10_000

    def test_files_with_random_changes(self) -> None:
        assert all_survive("mutated", mutated()) == MUTANTS

    def test_random_bytes(self) -> None:
        assert all_survive("noise", noise()) == NOISES


@pytest.mark.parametrize("name", BUFFERS)
def test_a_hostile_buffer_does_no_harm(name: str) -> None:
    all_survive(name, [BUFFERS[name]()])


@pytest.mark.slow
@pytest.mark.parametrize("name", BUFFERS)
def test_a_hostile_buffer_takes_no_more_memory_than_its_size_allows(name: str) -> None:
    data = BUFFERS[name]()
    decode_block(SEED.data or b"")  # Models are built when they are first used.
    tracemalloc.start()
    try:
        survives(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB + MEMORY_PER_BYTE * len(data)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_what_once_went_wrong_stays_right(name: str) -> None:
    with pytest.raises(MalformedBytesError):
        decode_block(REGRESSIONS[name]())
