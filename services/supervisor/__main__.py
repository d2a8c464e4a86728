"""`python -m services.supervisor`: run the whole system, as `odf up` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odf_common.settings import Settings

app = typer.Typer(
    name="supervisor", add_completion=False, pretty_exceptions_enable=False, context_settings={"max_content_width": 100}
)


@app.command(
    help="Run Kafka, the ingest job, the committer and the gateway until Ctrl-C, and start again what dies.",
    epilog="Example: python -m services.supervisor --data-dir .odf",
)
def main(
    data_dir: Annotated[
        Path | None, typer.Option(help="The folder for everything that is kept. Default: $ODF_DATA_DIR or .odf")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The gateway's port.")] = None,
    kafka_port: Annotated[
        int | None, typer.Option(help="The embedded broker's port. Default: the last one, or a free one.")
    ] = None,
) -> None:
    """Run until told to stop."""
    from services.supervisor.run import run

    settings = Settings() if data_dir is None else Settings(data_dir=data_dir)
    raise typer.Exit(run(settings, port=port, kafka_port=kafka_port))


if __name__ == "__main__":
    app()
