"""`odf subscribe`: told of new blocks as they come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.opening import DataDir, chain_of, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, reporting

if TYPE_CHECKING:
    from odf_common.identity.did import DatasetId
    from odf_common.messages.block_appended import AppendedBlock
    from odf_common.repository.repository import Dataset
    from services.cli.block_topic import BlockFeed

_POLL_S = 1.0


@reporting
def subscribe(
    datasets: Annotated[
        list[str] | None, typer.Argument(metavar="DATASET…", help="Aliases or ids.", show_default="all datasets")
    ] = None,
    start: Annotated[
        str,
        typer.Option("--from", help="head: what comes from now on; genesis or a sequence number: replay from there."),
    ] = "head",
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many blocks.", show_default="never")] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Iterator[str]:
    """Print a line for each block, as notifications come. Each block of a dataset once and in order."""
    from itertools import islice

    line = _line if output == Format.TEXT else _json
    return map(line, islice(_blocks(datasets or [], _first_number(start), data_dir), limit))


def _first_number(start: str) -> int | None:
    """The sequence number to replay from; None for none at all."""
    if start == "head":
        return None
    if start == "genesis":
        return 0
    if not start.isdecimal():
        raise typer.BadParameter("say head, genesis or a sequence number", param_hint="--from")
    return int(start)


def _blocks(names: list[str], first: int | None, data_dir: Path | None) -> Iterator[AppendedBlock]:
    from odf_common.endpoints import bootstrap_servers
    from services.cli.block_topic import block_feed

    settings = settings_of(data_dir)
    with opened_repository(settings) as repository:
        refs = [parsed_ref(name) for name in names] or [entry.id for entry in repository.datasets()]
        chosen = [repository.open(ref) for ref in refs]
        following = {
            each.entry.id: chain_of(each).state().next_sequence_number if first is None else first for each in chosen
        }
        with block_feed(bootstrap_servers(settings)) as feed:
            # The feed is open before the chains are read: what comes in between is in both, and told once.
            for dataset in chosen:
                for block in _replayed(dataset, following[dataset.entry.id]):
                    following[dataset.entry.id] = block.sequence_number + 1
                    yield block
            yield from _followed(feed, following, only_these=bool(names))


def _followed(feed: BlockFeed, following: dict[DatasetId, int], *, only_these: bool) -> Iterator[AppendedBlock]:
    """What is told from now on; a block that is told again is left out."""
    while True:
        for block in feed.poll(_POLL_S):
            if only_these and block.dataset_id not in following:
                continue
            if block.sequence_number >= following.get(block.dataset_id, 0):
                following[block.dataset_id] = block.sequence_number + 1
                yield block


def _replayed(dataset: Dataset, first: int) -> Iterator[AppendedBlock]:
    """The blocks of a chain from a number on, oldest first, in bounded memory."""
    from odf_common.chain.walk import ChainTape, decoded, walk_back
    from odf_common.messages.appending import appended_block
    from odf_common.storage.layout import HEAD

    head = dataset.refs.get(HEAD)
    if head is None:
        return
    with ChainTape() as tape:
        for stored in walk_back(dataset.objects, head):
            number = decoded(stored).block.sequence_number
            if number >= first:
                tape.record(stored)
            if number <= first:
                break
        for stored in tape.oldest_first():
            yield appended_block(dataset.entry.id, dataset.entry.alias, decoded(stored))


def _line(block: AppendedBlock) -> str:
    parts = [f"{block.system_time}  {block.dataset_alias}  {block.sequence_number}  {block.block_hash.short}"]
    parts.append(block.event_kind)
    if block.offset_interval is not None:
        parts.append(f"{block.num_records} records at {block.offset_interval.start}..{block.offset_interval.end}")
    if block.watermark is not None:
        parts.append(f"watermark {block.watermark}")
    return "  ".join(parts)


def _json(block: AppendedBlock) -> str:
    return block.to_json().decode()
