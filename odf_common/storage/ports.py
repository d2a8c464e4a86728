"""What the core asks of storage. The docstrings are the contract that every adapter keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Protocol

from odf_common.identity.multihash import Multihash
from odf_common.storage.layout import ObjectKind
from odf_common.wire.limits import MAX_BLOCK_SIZE


class ObjectStore(Protocol):
    """The immutable part of one dataset: blocks, slices and checkpoints, addressed by the hash of their bytes.

    Putting is idempotent: the same bytes at the same address, any number of times, from any number of writers; a
    reader sees the whole object or none. Nothing is checked against its address on the way in or out: whoever does not
    trust the bytes hashes them. All methods raise StoreUnavailableError when storage does not answer. Safe to share
    between threads.
    """

    def has(self, kind: ObjectKind, object_hash: Multihash) -> bool:
        """Whether the object is there.

        What was never synced may be there cut short after a power failure: also compare `size`.
        """
        ...

    def size(self, kind: ObjectKind, object_hash: Multihash) -> int:
        """The object's size in bytes; NotFoundError if it is not there."""
        ...

    def get_block(self, block_hash: Multihash, *, max_size: int = MAX_BLOCK_SIZE) -> bytes:
        """The bytes of a block; NotFoundError if it is not there, CorruptedError if it is larger than `max_size`."""
        ...

    def put_block(self, block_hash: Multihash, data: bytes) -> None:
        """Store a block."""
        ...

    def put_file(self, kind: ObjectKind, object_hash: Multihash, path: Path) -> None:
        """Take a staged local file into its address; the file at `path` is gone afterwards.

        Repeating it after a crash is fine: a staged file that is gone while the object is there is not an error,
        otherwise NotFoundError names the staged file. Uses little memory however large the file is.
        """
        ...

    def read_chunks(self, kind: ObjectKind, object_hash: Multihash) -> Iterator[bytes]:
        """The object's bytes in bounded chunks; NotFoundError, at the first chunk, if it is not there."""
        ...

    def open_file(self, kind: ObjectKind, object_hash: Multihash) -> BufferedReader:
        """A seekable binary file, such as pyarrow reads Parquet from; NotFoundError if it is not there."""
        ...

    def local_path(self, kind: ObjectKind, object_hash: Multihash) -> Path | None:
        """Where other programs find the object on this machine; None if it is not there or storage is elsewhere."""
        ...

    def hashes(self, kind: ObjectKind) -> Iterator[Multihash]:
        """All objects of a kind, in no order, as a stream; staging files and strangers are left out."""
        ...

    def get_info(self, name: str) -> bytes | None:
        """The content of a small derived file, None if there is none.

        CorruptedError if it is larger than MAX_BLOCK_SIZE or, in a folder, no regular file.
        """
        ...

    def put_info(self, name: str, data: bytes) -> None:
        """Replace a small derived file. It is not durable: it can be made again."""
        ...

    def sync(self, named: Iterable[tuple[ObjectKind, Multihash]] = ()) -> None:
        """Return when everything put so far, and the named objects, survives a power failure.

        Name what others may have put, such as another process; a named object that is not there is left out. After a
        StoreUnavailableError nothing put since the last sync is known to be safe: put it again.
        """
        ...


class RefStore(Protocol):
    """Named pointers into the chain: the only thing in a dataset that changes.

    A name is one or more parts joined by `/`, as `check_ref_name` allows; anything else is an InvalidTextError.
    An adapter may refuse a new ref `a/b` beside `a` with the same error. All methods raise StoreUnavailableError when
    storage does not answer.
    """

    def get(self, name: str) -> Multihash | None:
        """Where the ref stands, None if it does not exist. CorruptedError if what is stored is not a multihash."""
        ...

    def compare_and_set(self, name: str, *, expected: Multihash | None, new: Multihash) -> None:
        """Move the ref, or raise RefCASFailedError if it is not at `expected` (None: does not exist).

        Of several callers with the same expectation exactly one succeeds. A move that returned is durable. When the
        answer of storage gets lost, the move may have happened: a RefCASFailedError whose `actual` is `new` on the
        next try says so.
        """
        ...


class RefFiles(RefStore, Protocol):
    """Refs as files of a dataset's folder, which any web server can serve."""

    def names(self) -> Iterator[str]:
        """The refs that exist, in no order; files that cannot be refs are left out."""
        ...

    def replace(self, name: str, new: Multihash) -> None:
        """Set the ref whatever it was, even damaged: for the owner of the truth, who repairs the file."""
        ...

    def remove(self, name: str) -> None:
        """Delete the ref; it is fine if there is none."""
        ...
