"""The logical hash of tabular data: arrow-digest version 0 over SHA3-256, independent of file format and encoding."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from odf_common.data.digest_types import type_header, u64
from odf_common.data.digest_values import Mask, own_mask, value_bytes
from odf_common.data.parquet_file import ParquetSource, opened
from odf_common.data.reference_decoder import reference_batches, reference_schema
from odf_common.identity.multihash import ARROW0_SHA3_256, Multihash

if TYPE_CHECKING:
    from hashlib import _Hash


class LogicalHasher:
    """The logical hash of record batches that share one schema, in their order.

    How rows are cut into batches makes no difference, except where `is_cut_sensitive` says so.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._names = hashlib.sha3_256()
        self._leaves: list[_Hash] = []
        for column in schema:
            self._open(column, level=0, path=column.name)

    def _open(self, column: pa.Field, *, level: int, path: str) -> None:
        name = column.name.encode()
        self._names.update(u64(len(name)) + name + u64(level))
        if types.is_struct(column.type):
            for member in column.type:
                self._open(member, level=level + 1, path=f"{path}.{member.name}")
        else:
            self._leaves.append(hashlib.sha3_256(type_header(column.type, column=path)))

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of one batch; ValueError when its schema is not the hasher's."""
        if not batch.schema.equals(self._schema):
            raise ValueError(f"a batch has the columns\n{batch.schema}\nwhere these were promised:\n{self._schema}")
        leaves = (leaf for column in batch.columns for leaf in _leaves(column, None))
        for hasher, (array, mask) in zip(self._leaves, leaves, strict=True):
            _feed(hasher, array, mask)

    def finish(self) -> Multihash:
        """The hash of all rows so far; more may follow."""
        record = self._names.copy()
        for hasher in self._leaves:
            record.update(hasher.digest())
        return Multihash(ARROW0_SHA3_256, record.digest())


class HashingBehind:
    """Hashes batches on a thread of its own while the caller makes the next; both leave the interpreter's lock."""

    def __init__(self, hasher: LogicalHasher) -> None:
        self._hasher = hasher
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._under_way: Future[None] | None = None

    def update(self, *batches: pa.RecordBatch) -> None:
        """Take more batches once those before are done; raises what went wrong with them."""
        self._wait()
        self._under_way = self._thread.submit(self._update, batches)

    def close(self) -> None:
        """Wait until all batches are in the hasher, and end the thread."""
        self._thread.shutdown()
        self._wait()

    def _update(self, batches: tuple[pa.RecordBatch, ...]) -> None:
        for batch in batches:
            self._hasher.update(batch)

    def _wait(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()


def logical_hash(source: ParquetSource) -> Multihash:
    """The logical hash of a Parquet file, as the reference implementation finds it.

    Raises MalformedBytesError when it is not Parquet, UnsupportedTypeError when a column cannot be hashed.
    """
    with opened(source) as file:
        schema = reference_schema(file)
        hasher = LogicalHasher(schema)
        with closing(HashingBehind(hasher)) as behind:
            for batch in reference_batches(file, schema):
                behind.update(batch)
        return hasher.finish()


def array_digest(array: pa.Array) -> bytes:
    """The digest of one array on its own, without a name: 32 bytes."""
    hasher = hashlib.sha3_256(type_header(array.type))
    _feed(hasher, array, own_mask(array))
    return hasher.digest()


def _feed(hasher: _Hash, array: pa.Array, mask: Mask) -> None:
    for data in value_bytes(array, mask):
        hasher.update(data)


def _leaves(array: pa.Array, handed_down: Mask) -> Iterator[tuple[pa.Array, Mask]]:
    """The leaves below a column, depth first, each with the nulls that count for it."""
    mask = _combined(handed_down, own_mask(array))
    if not types.is_struct(array.type):
        yield array, mask
        return
    for index in range(array.type.num_fields):
        yield from _leaves(array.field(index), mask)


def _combined(handed_down: Mask, own: Mask) -> Mask:
    """The reference's way to combine two levels of nulls, a quirk that defines the hash.

    It joins the bitmaps with OR, so a row is null only if it is null on both levels; and a bitmap from above in which
    nothing is null makes it forget the nulls below.
    """
    if handed_down is None:
        return own
    if handed_down.all():
        return None
    return handed_down if own is None else handed_down | own
