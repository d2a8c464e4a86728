"""`odf id`: identities and references."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from services.cli.reporting import Format, Output, Report, failure, reporting

app = typer.Typer(no_args_is_help=True)


@app.command(epilog="Example: odf id new --key-file my-dataset.key")
@reporting
def new(
    key_file: Annotated[
        Path | None, typer.Option(help="Keep the private key here (PEM, readable by you alone).", show_default=False)
    ] = None,
    output: Output = Format.TEXT,
) -> Report:
    """Make a new dataset identity. Without --key-file its private key is thrown away."""
    from odf_common.identity.key_pair import KeyPair

    pair = KeyPair.generate()
    if key_file is not None:
        try:
            pair.save(key_file)
        except FileExistsError:
            return failure("FileExists", f"{key_file} exists already; keys are never overwritten, choose another name")
    did = pair.dataset_id
    found = {"id": str(did), "didKey": did.to_did_key(), "keyFile": str(key_file) if key_file else None}
    return Report(f"{did}\n{did.to_did_key()}", found)


@app.command(epilog="Example: odf id parse kamu.dev/covid19.cases")
@reporting
def parse(
    text: Annotated[str, typer.Argument(help="An identity, hash or dataset reference.", show_default=False)],
    known_repo: Annotated[
        list[str] | None, typer.Option(help="A repository's name: makes `name/…` a remote reference.")
    ] = None,
    output: Output = Format.TEXT,
) -> Report:
    """Say what a text is and show its parts; or where it goes wrong."""
    from services.cli.parsing import parts_of

    parts = parts_of(text, known_repos=known_repo or [])
    width = max(map(len, parts))
    lines = [f"{name:<{width}}  {value}" for name, value in parts.items()]
    return Report("\n".join(lines), parts)
