"""`odf block`: single blocks, as YAML or as the bytes that a dataset holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odf_common.errors import MalformedBytesError
from services.cli.reporting import Format, Output, Report, read_input, reporting, source_name

if TYPE_CHECKING:
    from odf_common.identity.multihash import Multihash
    from odf_common.wire.encoded_block import EncodedBlock

_NUL = b"\0"
"""No text has it, every block does."""

app = typer.Typer(no_args_is_help=True)

Input = Annotated[Path, typer.Argument(help="A file, or - for standard input.", show_default=False)]


class DecodedFormat(StrEnum):
    """How a block is shown."""

    YAML = "yaml"
    JSON = "json"


class ManifestVersion(StrEnum):
    """The version of a block file."""

    TWO = "2"
    THREE = "3"


Version = Annotated[
    ManifestVersion | None,
    typer.Option(help="2 is read by every peer, 3 aligns timestamps. As the manifest says, unless given."),
]


@app.command(epilog="Example: odf block encode block.yaml -o block.bin")
@reporting
def encode(
    block: Input,
    target: Annotated[Path, typer.Option("-o", "--out", help="The file to write.", show_default=False)],
    manifest_version: Version = None,
    output: Annotated[Format, typer.Option("--print", help="Print for people or for scripts.")] = Format.TEXT,
) -> Report:
    """Write a MetadataBlock manifest (YAML or JSON) as a block file, and print its hash."""
    encoded = _encoded(read_input(block), source_name(block), manifest_version)
    target.write_bytes(encoded.data)
    found = {"hash": str(encoded.hash), "size": len(encoded.data), "manifestVersion": encoded.manifest_version}
    return Report(str(encoded.hash), found | {"file": str(target)})


@app.command(epilog="Example: odf block decode my-dataset/blocks/f1620…")
@reporting
def decode(
    block: Input, output: Annotated[DecodedFormat, typer.Option("--output", "-o")] = DecodedFormat.YAML
) -> Report:
    """Show a block file as a manifest. What a later version put into it and we do not know is told on stderr."""
    from odf_common.text.writer import write_document
    from odf_common.wire.decode import decode_block
    from services.cli.manifests import block_document

    data = read_input(block)
    with _named(data, source_name(block)):
        decoded = decode_block(data)
    manifest = block_document(decoded)
    return Report(write_document(manifest).rstrip("\n"), manifest, warnings=decoded.unknown)


@app.command(name="hash", epilog="Example: odf block hash block.yaml")
@reporting
def hash_(block: Input, manifest_version: Version = None, output: Output = Format.TEXT) -> Report:
    """Print the hash of a block: of a block file's bytes, or of what a manifest would be encoded to."""
    block_hash = _hash(read_input(block), source_name(block), manifest_version)
    return Report(str(block_hash), {"hash": str(block_hash)})


@contextmanager
def _named(data: bytes, source: str) -> Iterator[None]:
    """Let errors say which file is no block, and what else it may be."""
    try:
        yield
    except MalformedBytesError as error:
        hint = "" if _NUL in data else "; it may be a manifest: `odf block encode` makes a block of one"
        raise type(error)(f"{source}: {error}{hint}") from error


def _hash(data: bytes, source: str, version: ManifestVersion | None) -> Multihash:
    if _NUL not in data:
        return _encoded(data, source, version).hash
    from odf_common.identity.multihash import sha3_256
    from odf_common.wire.envelope import open_envelope

    with _named(data, source):
        open_envelope(data)
    return sha3_256(data)


def _encoded(data: bytes, source: str, version: ManifestVersion | None) -> EncodedBlock:
    from odf_common.metadata.manifests import MetadataBlockManifest
    from odf_common.text.reader import read_document
    from odf_common.text.validation import validate
    from odf_common.wire.encode import seal

    manifest = validate(MetadataBlockManifest, read_document(data, source=source))
    return seal(manifest.content, manifest_version=int(version) if version else manifest.version)
