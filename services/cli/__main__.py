"""`odf`: the command line. Heavy libraries are imported by the commands that use them, so that it answers at once."""

from __future__ import annotations

import typer

from services.cli import block, chain, hashes, identity

app = typer.Typer(
    name="odf",
    help="Open Data Fabric datasets that anyone can check.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Example: odf chain check ./my-dataset",
)
app.add_typer(
    block.app,
    name="block",
    help="Encode, decode and hash metadata blocks.",
    epilog="Example: odf block hash block.yaml",
)
app.add_typer(
    hashes.app, name="hash", help="Hash data files.", epilog="Example: odf hash logical my-dataset/data/f1620…"
)
app.add_typer(
    identity.app,
    name="id",
    help="Make and read identities and references.",
    epilog="Example: odf id new --key-file my-dataset.key",
)
app.add_typer(
    chain.app,
    name="chain",
    help="Read, check and extend the chain of a dataset folder.",
    epilog="Example: odf chain check my-dataset",
)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
