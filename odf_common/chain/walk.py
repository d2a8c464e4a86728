"""Walking a chain: links lead from the head back, states are folded from the beginning on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from odf_common.errors import CorruptedError, MalformedBytesError, NotFoundError
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.storage.layout import ObjectKind
from odf_common.storage.ports import ObjectStore
from odf_common.wire.decode import decode_block
from odf_common.wire.encoded_block import EncodedBlock
from odf_common.wire.envelope import prev_block_hash

_IN_MEMORY = 64 * 1024 * 1024  # bytes; what is more goes to a temporary file


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """The bytes of a block, which hash to its address."""

    hash: Multihash
    data: bytes


def block_place(block_hash: Multihash) -> str:
    """Where a block lies in a dataset's folder, as errors name it."""
    return f"{ObjectKind.BLOCKS.value}/{block_hash}"


def walk_back(objects: ObjectStore, head: Multihash, *, until: Multihash | None = None) -> Iterator[StoredBlock]:
    """Blocks from the head to the first one, or to the one behind `until`. Each is checked against its address.

    CorruptedError names the first block that is missing or damaged.
    """
    block_hash: Multihash | None = head
    while block_hash is not None and block_hash != until:
        stored = StoredBlock(block_hash, _read(objects, block_hash))
        yield stored
        try:
            block_hash = prev_block_hash(stored.data)
        except MalformedBytesError as error:
            raise CorruptedError(block_place(stored.hash), str(error)) from error


def decoded(stored: StoredBlock) -> EncodedBlock:
    """The block that the bytes hold; CorruptedError names it when they hold none."""
    try:
        return decode_block(stored.data)
    except MalformedBytesError as error:
        raise CorruptedError(block_place(stored.hash), str(error)) from error


def _read(objects: ObjectStore, block_hash: Multihash) -> bytes:
    try:
        data = objects.get_block(block_hash)
    except NotFoundError as error:
        raise CorruptedError(block_place(block_hash), "the chain needs this block, but it does not exist") from error
    actual = sha3_256(data)
    if actual != block_hash:
        raise CorruptedError(block_place(block_hash), f"its bytes hash to {actual}")
    return data


class ChainTape:
    """Blocks taken newest first and given back oldest first, in bounded memory: each is read from storage once."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._hashes: list[Multihash] = []
        self._ends: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._hashes)

    def record(self, block: StoredBlock) -> None:
        """Take the next older block."""
        self._file.write(block.data)
        self._hashes.append(block.hash)
        self._ends.append(self._file.tell())

    def oldest_first(self) -> Iterator[StoredBlock]:
        """Give all blocks back."""
        for index in range(len(self._hashes) - 1, -1, -1):
            start = self._ends[index - 1] if index else 0
            self._file.seek(start)
            yield StoredBlock(self._hashes[index], self._file.read(self._ends[index] - start))
