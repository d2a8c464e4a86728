"""`odf demo`: the whole system at work, on real data."""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.opening import DataDir, settings_of
from services.cli.reporting import Format, Output, Report, reporting


@reporting
def demo(
    events: Annotated[
        int | None, typer.Option(min=1, help="How many events to replay, of both datasets.", show_default="all")
    ] = None,
    rate: Annotated[float, typer.Option(min=0, help="Events per second; 0 is as fast as possible.")] = 2_000,
    exit_: Annotated[bool, typer.Option("--exit", help="End when all of them are in blocks.")] = False,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="The gateway's; 0 is any free one.", show_default="8321 if it is free"),
    ] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Replay the flights and weather of New York 2013 through a system that it starts, and check the datasets.

    Runs until Ctrl-C. The next run on the same folder goes on where this one ends.
    """
    from rich.console import Console

    from services.demo.demo import run
    from services.demo.replay import Options
    from services.demo.screen import Screen

    options = Options(events=events, rate=rate, ends=exit_)
    screen = Screen(Console(stderr=True, highlight=False))
    outcome = run(settings_of(data_dir), options, screen, port=port)
    found = outcome.figures
    if found is None:
        return Report("", {"error": "Interrupted", "message": "stopped before the replay began"}, exit_code=int(exit_))
    # Who stops it by hand leaves events on their way, which the next run finds in blocks.
    unfinished = exit_ if outcome.interrupted else not found.complete
    failed = not found.verified or unfinished
    return Report(found.to_text(), found.to_data(), exit_code=int(failed))
