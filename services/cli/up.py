"""`odf up`: the whole system."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.opening import DataDir, settings_of
from services.cli.reporting import Report, reporting


@reporting
def up(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="The gateway's; 0 is any free one.", show_default="8321 if it is free"),
    ] = None,
    kafka_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="The embedded broker's.", show_default="a free one, kept between runs"),
    ] = None,
    data_dir: DataDir = None,
) -> Report:
    """Start broker, jobs, committer, poller and gateway, and keep them running until Ctrl-C."""
    from services.supervisor import run

    return Report("", {}, exit_code=run(settings_of(data_dir), port=port, kafka_port=kafka_port))
