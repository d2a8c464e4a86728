"""`odf hash`: data files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.reporting import Format, Output, Report, reporting

app = typer.Typer(no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The file.", show_default=False)]


@app.command(epilog="Example: odf hash logical my-dataset/data/f1620…")
@reporting
def logical(file: File, output: Output = Format.TEXT) -> Report:
    """Print the logical hash of a Parquet file: of its rows, however they are laid out."""
    from odf_common.data.logical_hash import logical_hash

    found = logical_hash(file)
    return Report(str(found), {"hash": str(found)})


@app.command(epilog="Example: odf hash physical my-dataset/data/f1620…")
@reporting
def physical(file: File, output: Output = Format.TEXT) -> Report:
    """Print the physical hash of a file: of its bytes. It names the file in a dataset."""
    from odf_common.identity.multihash import sha3_256_of

    with file.open("rb") as opened:
        found, size = sha3_256_of(iter(lambda: opened.read(1024 * 1024), b""))
    return Report(str(found), {"hash": str(found), "size": size})
