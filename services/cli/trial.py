"""`odf try`: what files would add to a dataset, while its manifest is being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from services.cli.reporting import Format, Output, reporting, source_name

_REFUSED = 1


@reporting
def try_(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="A DatasetSnapshot.", show_default=False)],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="One ingest call each, - for standard input.", show_default=False),
    ],
    event_time: Annotated[
        list[str] | None,
        typer.Option(help="For records without their own (RFC 3339): once, or once per file.", show_default="now"),
    ] = None,
    system_time: Annotated[
        list[str] | None,
        typer.Option(help="When it would be ingested (RFC 3339): once, or once per file.", show_default="now"),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="The push source, if the manifest has several.", show_default="the only one")
    ] = None,
    media_type: Annotated[
        str | None,
        typer.Option(
            help="The files' format, such as text/csv.", show_default="told by their names, else the source's"
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Show so many rows of each file at most (text only).")] = 50,
    output: Output = Format.TEXT,
) -> Iterator[str]:
    """Show what files, one after another, would add to a new dataset. Needs no running system and commits nothing.

    The rows are those that `odf ingest` would append, with offset, operation (+A append, -R retract, -C and +C correct)
    and times. With a polling source a file stands for what was fetched. With -o json each row is a line on stdout;
    records and files that are refused are lines on stderr. Exit code 1 if anything was refused, else 0.
    """
    from odf_common.errors import OdfError
    from services.cli.trial_input import times_of, tried_source
    from services.cli.trial_output import fatal, ndjson, text

    event_times = times_of(event_time, len(files), hint="--event-time")
    system_times = times_of(system_time, len(files), hint="--system-time")
    refused = False
    with ExitStack() as stack:
        try:
            tried = tried_source(manifest, source, stack)
        except (OdfError, OSError) as error:
            if output == Format.TEXT:
                raise
            fatal(error)  # stdout is for rows
            raise typer.Exit(_REFUSED) from None
        for path, *times in zip(files, event_times, system_times, strict=True):
            try:
                taken = tried.take(path, *times, media_type=media_type)
            except OSError as error:
                if output == Format.TEXT:
                    raise
                fatal(error)
                raise typer.Exit(_REFUSED) from None
            refused = refused or bool(taken.letters)
            tell = ndjson if output == Format.JSON else partial(text, limit=limit)
            yield from tell(source_name(path), taken, tried.vocabulary)
    if refused:
        raise typer.Exit(_REFUSED)
