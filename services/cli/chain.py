"""`odf chain`: the chain of a dataset folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odf_common.errors import CorruptedError, InvalidTextError, NotFoundError, OdfError
from services.cli.progress import checking
from services.cli.reporting import Format, Output, Report, failure, json_array, reporting, source_name

if TYPE_CHECKING:
    from odf_common.chain.check import CheckedDataset
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.identity.multihash import Multihash
    from odf_common.metadata.events import MetadataEvent
    from odf_common.timestamp import Timestamp

app = typer.Typer(no_args_is_help=True)

Folder = Annotated[
    str, typer.Argument(help="A dataset in ODF layout: a folder, or s3://bucket/prefix.", show_default=False)
]


class LogFormat(StrEnum):
    """How a chain is shown."""

    TEXT = "text"
    YAML = "yaml"
    JSON = "json"


@app.command(epilog="Example: odf chain check my-dataset")
@reporting
def check(folder: Folder, output: Output = Format.TEXT) -> Report:
    """Check every block hash, link, rule, slice and checkpoint; name the first file that is wrong."""
    from odf_common.chain.check import check_dataset
    from odf_common.storage.location import open_folder

    dataset = open_folder(folder)
    try:
        with checking() as on_progress:
            checked = check_dataset(dataset.objects, dataset.refs, on_progress=on_progress)
    except CorruptedError as error:
        return failure(error.code, str(error), file=error.place, reason=error.reason)
    return _checked_report(checked)


def _checked_report(checked: CheckedDataset) -> Report:
    found = {
        "id": str(checked.chain.dataset_id),
        "kind": str(checked.chain.dataset_kind),
        "head": str(checked.chain.head),
        "blocks": checked.blocks,
        "slices": checked.slices,
        "records": checked.records,
        "size": checked.size,
        "watermark": str(checked.chain.watermark) if checked.chain.watermark else None,
        "unknown": list(checked.unknown),
    }
    text = (
        f"ok: {checked.blocks} blocks, {checked.slices} slices with {checked.records} records, {checked.size} bytes\n"
        f"head {checked.chain.head}"
    )
    return Report(text, found, warnings=tuple(f"not understood: {part}" for part in checked.unknown))


@app.command(epilog="Example: odf chain log my-dataset -o yaml --limit 3")
@reporting
def log(
    folder: Folder,
    limit: Annotated[int | None, typer.Option(min=1, help="Show so many blocks at most.", show_default="all")] = None,
    output: Annotated[LogFormat, typer.Option("--output", "-o")] = LogFormat.TEXT,
) -> Iterator[str]:
    """Show the blocks, newest first: a line each, or as manifests."""
    from services.cli import manifests

    chain = _open_chain(folder)
    if chain.head is None:
        raise NotFoundError(f"{folder}: refs/head does not exist; is this the folder of a dataset?")
    blocks = islice(chain.blocks(), limit)
    match output:
        case LogFormat.TEXT:
            return map(manifests.block_line, blocks)
        case LogFormat.YAML:
            return map(manifests.block_yaml, blocks)
        case LogFormat.JSON:
            return json_array({"hash": str(block.hash), **manifests.block_document(block)} for block in blocks)


@app.command(epilog="Example: odf chain append my-dataset events.yaml --at 2020-01-01T12:00:00Z --step 1")
@reporting
def append(
    folder: Folder,
    events: Annotated[
        Path, typer.Argument(help="Events in YAML, one per document; - for standard input.", show_default=False)
    ],
    at: Annotated[str | None, typer.Option(help="System time of the first block.", show_default="now")] = None,
    step: Annotated[float, typer.Option(min=0, help="Seconds added to the system time for each block.")] = 0,
    objects: Annotated[bool, typer.Option(help="Whether the files that events name must be there.")] = True,
    output: Output = Format.TEXT,
) -> Report:
    """Append events one by one, each checked against every rule. A low-level tool.

    What was appended before a refused event stays. The folder is created when the first event is a Seed.
    """
    from odf_common.text.errors import InvalidManifestError
    from odf_common.timestamp import Timestamp
    from services.cli.manifests import read_events

    try:
        first = Timestamp.parse(at) if at is not None else Timestamp.now()
    except InvalidTextError as error:
        raise typer.BadParameter(str(error), param_hint="--at") from error
    found: list[MetadataEvent] = []
    try:
        found.extend(read_events(events))
    except InvalidManifestError as error:
        return failure(error.code, str(error), refused=len(found), appended=[])
    if not found:
        return failure("NoEvents", f"there is no event in {source_name(events)}", appended=[])
    chain = _open_chain(folder)
    hashes: list[str] = []
    for index, event in enumerate(found):
        try:
            hashes.append(str(_append(chain, event, first.plus_seconds(index * step), objects_exist=objects)))
        except OdfError as error:
            refusal = failure(error.code, str(error), refused=index, appended=hashes)
            return replace(refusal, text=f"{refusal.text}\n(event {index}; {len(hashes)} before it were appended)")
        if output == Format.TEXT:
            typer.echo(hashes[-1])
    return Report("", {"appended": hashes, "head": hashes[-1]})


def _append(chain: MetadataChain, event: MetadataEvent, system_time: Timestamp, *, objects_exist: bool) -> Multihash:
    from odf_common.chain.state import next_block
    from odf_common.wire.encode import seal

    block = seal(next_block(chain.state(), event, system_time=system_time))
    return chain.append([block], objects_exist=objects_exist)[-1]


def _open_chain(folder: str) -> MetadataChain:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.storage.location import open_folder

    dataset = open_folder(folder)
    return MetadataChain(dataset.objects, dataset.refs)
