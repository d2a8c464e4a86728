"""`odf`: the command line. Heavy libraries are imported by the commands that use them, so that it answers at once."""

from __future__ import annotations

import gc
import logging

import typer

from services.cli import (
    add,
    block,
    chain,
    datasets,
    dead_letters,
    demo,
    doctor,
    hashes,
    identity,
    ingest,
    pull,
    sources,
    status,
    subscribe,
    tail,
    trial,
    up,
    verify,
    watermarks,
)
from services.cli.without_pandas import leave_out_pandas

app = typer.Typer(
    name="odf",
    help="Open Data Fabric datasets that anyone can check.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Example: odf up, then in another terminal: odf add my-dataset.yaml",
)
app.command(epilog="Example: odf up --port 8080 --data-dir .odf")(up.up)
app.command(epilog="Example: odf demo --rate 5000")(demo.demo)
app.command(epilog="Example: odf add city.yaml country.yaml --partitions 4")(add.add)
app.command(name="try", epilog="Example: odf try city.yaml monday.csv tuesday.csv --event-time 2024-01-01T00:00:00Z")(
    trial.try_
)
app.command(epilog="Example: odf append city.temperature license.yaml")(add.append)
app.command(name="list", epilog="Example: odf list -o json")(datasets.list_)
app.command(epilog="Example: odf inspect city.temperature")(datasets.inspect)
app.command(epilog="Example: odf log city.temperature --limit 20")(datasets.log)
app.command(epilog="Example: odf ingest city.temperature events.ndjson --event-time 2024-01-01T00:00:00Z")(
    ingest.ingest
)
app.command(epilog="Example: odf pull city.temperature")(pull.pull)
app.command(epilog="Example: odf tail city.temperature -n 20 --follow")(tail.tail)
app.command(epilog="Example: odf subscribe city.temperature --from genesis -o json")(subscribe.subscribe)
app.command(epilog="Example: odf status -o json")(status.status)
app.command(epilog="Example: odf doctor city.temperature")(doctor.doctor)
app.command(epilog="Example: odf verify city.temperature")(verify.verify)
app.add_typer(
    sources.app,
    name="source",
    help="Where data comes from: how sources are read, and whether they are.",
    epilog="Example: odf source set city.temperature --batch-time 60",
)
app.add_typer(
    watermarks.app,
    name="watermark",
    help="Promises about event time, given by hand.",
    epilog="Example: odf watermark set city.temperature 2024-01-31T00:00:00Z",
)
app.add_typer(
    dead_letters.app,
    name="dead-letters",
    help="Records that could not be read: look at them, send them again.",
    epilog="Example: odf dead-letters list city.temperature",
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
    # The client tells of every attempt to connect; commands say in one sentence what does not answer.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    logging.getLogger("kafka").propagate = False
    leave_out_pandas()
    # Imports make a hundred thousand objects that stay: looking through them again and again takes longer than they do.
    gc.set_threshold(100_000)
    app()


if __name__ == "__main__":
    main()
