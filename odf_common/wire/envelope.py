"""The Manifest around a block, read without knowing what the block says."""

from __future__ import annotations

from typing import NamedTuple

from odf_common.errors import MalformedBytesError
from odf_common.identity.multihash import Multihash
from odf_common.wire._generated.layout import TABLES
from odf_common.wire.layout import table_width
from odf_common.wire.limits import MAX_BLOCK_SIZE
from odf_common.wire.reader import BufferReader
from odf_common.wire.versions import MAX_VERSION, METADATA_BLOCK_CODE, MIN_VERSION

_PREV_BLOCK_HASH = next(slot.index for slot in TABLES["MetadataBlock"] if slot.name == "prev_block_hash")


class ObsoleteVersionError(MalformedBytesError):
    """The manifest is older than any that is still read."""


class UnsupportedVersionError(MalformedBytesError):
    """The manifest is newer than any that is known."""


class Envelope(NamedTuple):
    """What a block file says about the buffer inside."""

    version: int
    content: bytes
    unknown: tuple[str, ...]
    """Fields of later versions."""


def open_envelope(data: bytes) -> Envelope:
    """Open a block file. MalformedBytesError, or a subclass for versions that are not read."""
    if len(data) > MAX_BLOCK_SIZE:
        raise MalformedBytesError(f"a block of {len(data)} bytes is larger than the {MAX_BLOCK_SIZE} that are read")
    manifest = BufferReader(data).root()
    kind, version = manifest.scalar(0, "long"), manifest.scalar(1, "int")
    if kind != METADATA_BLOCK_CODE:
        raise MalformedBytesError(
            f"not a metadata block: the manifest's kind is {kind:#x}, not {METADATA_BLOCK_CODE:#x}"
        )
    if version < MIN_VERSION:
        raise ObsoleteVersionError(
            f"Obsolete version: manifest has version {version} while minimum supported version is {MIN_VERSION}"
        )
    if version > MAX_VERSION:
        raise UnsupportedVersionError(
            f"Unsupported version: manifest has version {version} while maximum supported version is {MAX_VERSION}"
        )
    content = manifest.bytes(2)
    if content is None:
        raise MalformedBytesError("not a metadata block: the manifest has no content")
    unknown = (unknown_field("Manifest", index) for index in manifest.present_beyond(table_width(TABLES["Manifest"])))
    return Envelope(version, content, tuple(unknown))


def prev_block_hash(data: bytes) -> Multihash | None:
    """The hash of the previous block, without decoding the event: enough to walk a chain back."""
    link = BufferReader(open_envelope(data).content).root().bytes(_PREV_BLOCK_HASH)
    return None if link is None else Multihash.from_bytes(link)


def unknown_field(table: str, index: int) -> str:
    """How a field of a later version is reported."""
    return f"{table}: unknown field in slot {index}"
