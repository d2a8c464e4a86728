"""`odf watermark`: promises about event time that are given by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.opening import DataDir, DatasetArgument, opened_repository, parsed_ref, parsed_time, settings_of
from services.cli.reporting import Format, Output, Report, reporting

if TYPE_CHECKING:
    from odf_common.chain.state import ChainState
    from odf_common.metadata.events import AddData
    from odf_common.timestamp import Timestamp

app = typer.Typer(no_args_is_help=True)


@app.command(name="set", epilog="Example: odf watermark set city.temperature 2024-01-31T00:00:00Z")
@reporting
def set_(
    dataset: DatasetArgument,
    time: Annotated[str, typer.Argument(metavar="TIME", help="RFC 3339.", show_default=False)],
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Promise that the dataset is complete up to an event time. A lower or equal one changes nothing."""
    from odf_common.repository.appending import append_events
    from odf_common.timestamp import Timestamp

    watermark = parsed_time(time, hint="TIME")
    with opened_repository(settings_of(data_dir)) as repository:
        appended = append_events(
            repository, parsed_ref(dataset), lambda chain: watermark_events(chain, watermark), Timestamp.now()
        )
        if appended:
            return Report(str(appended[-1]), {"change": "advanced", "blockHash": str(appended[-1])})
    return Report("up to date", {"change": "up to date"})


def watermark_events(chain: ChainState, watermark: Timestamp) -> list[AddData]:
    """The event that sets a watermark; none where the chain promises as much already.

    It repeats the source state, as peers look for it in the latest AddData only.
    """
    from odf_common.repository.appending import without_rows

    if chain.watermark is not None and watermark <= chain.watermark:
        return []
    source_state = chain.last_add_data.source_state if chain.last_add_data else None
    return [without_rows(chain, watermark=watermark, source_state=source_state)]
