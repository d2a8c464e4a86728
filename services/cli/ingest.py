"""`odf ingest`: files into a running system."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from odf_common.errors import NotFoundError
from services.cli.opening import (
    DataDir,
    DatasetArgument,
    SourceOption,
    chain_of,
    opened_repository,
    parsed_ref,
    settings_of,
)
from services.cli.reporting import STDIN, Format, Output, Report, failure, reporting

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.chain.state import ChainState
    from odf_common.ingest.cutting import Piece
    from odf_common.metadata.events import AddPushSource
    from services.cli.block_topic import BlockFeed
    from services.cli.producing import Sent
    from services.cli.receipts import Receipt

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE…", help="What the source reads, - for standard input.", show_default=False)
]


@reporting
def ingest(
    dataset: DatasetArgument,
    files: Files,
    source: SourceOption = None,
    wait: Annotated[bool, typer.Option(help="Wait until blocks hold everything, and print the receipt.")] = True,
    timeout: Annotated[float, typer.Option(min=0, help="Give up waiting when no block came for so many seconds.")] = 60,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Send files to a push source of a running system, and wait for the blocks that hold their records."""
    from odf_common.endpoints import bootstrap_servers
    from odf_common.repository.bindings import binding_of
    from services.cli.block_topic import block_feed
    from services.cli.producing import ensure_topic, send

    settings = settings_of(data_dir)
    servers = bootstrap_servers(settings)
    began = time.monotonic()
    with ExitStack() as stack:
        repository = stack.enter_context(opened_repository(settings))
        entry = repository.catalog.dataset(parsed_ref(dataset))
        binding = binding_of(repository.catalog, entry, source)
        state = chain_of(repository.open(entry.id)).state()
        push_source = _active_source(state, entry, binding)
        ensure_topic(servers, binding, was_read=state.source_state(binding.source_name) is not None)
        feed = stack.enter_context(block_feed(servers)) if wait else None
        with _progress(files) as on_read:
            sent = send(servers, binding.topic, _pieces(push_source, files, on_read))
        sent_s = time.monotonic() - began
        found = _sent_data(binding, sent, sent_s)
        if not sent.messages or feed is None:
            return Report(_sent_text(found), found)
        receipt = _receipt(feed, entry, binding, sent, timeout)
    if receipt is None:
        hint = f"`odf doctor {entry.alias} {binding.source_name}` says where it is stuck"
        return failure("NotCommitted", f"sent, but no block came for {timeout:g} s; {hint}", **found)
    found |= _receipt_data(receipt, time.monotonic() - began)
    return Report(_receipt_text(found), found)


def _active_source(state: ChainState, entry: DatasetEntry, binding: PushSourceBinding) -> AddPushSource:
    found = state.push_source(binding.source_name)
    if found is None:
        raise NotFoundError(
            f"push source {binding.source_name!r} of {entry.alias} was disabled, nothing reads its topic"
        )
    return found


def _pieces(source: AddPushSource, files: Sequence[Path], on_read: Any) -> Iterator[Piece]:
    from odf_common.ingest.cutting import cut_counted
    from services.cli.producing import chunks_of

    for path in files:
        with _opened(path) as file:
            yield from cut_counted(source.read, chunks_of(file, on_read))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield sys.stdin.buffer
        return
    with path.open("rb") as file:
        yield file


def _receipt(
    feed: BlockFeed, entry: DatasetEntry, binding: PushSourceBinding, sent: Sent, timeout_s: float
) -> Receipt | None:
    from services.cli.receipts import wait_for_blocks

    with _waiting(sent.records) as on_progress:
        return wait_for_blocks(
            feed.poll,
            entry.id,
            binding.source_name,
            sent.start,
            sent.next,
            timeout_s=timeout_s,
            on_progress=on_progress,
        )


def _sent_data(binding: PushSourceBinding, sent: Sent, seconds: float) -> dict[str, Any]:
    return {
        "topic": binding.topic,
        "start": sent.start,
        "next": sent.next,
        "messages": sent.messages,
        "records": sent.records,
        "bytes": sent.size,
        "sentSeconds": round(seconds, 3),
    }


def _receipt_data(receipt: Receipt, seconds: float) -> dict[str, Any]:
    blocks = [
        {
            "hash": str(block.block_hash),
            "sequenceNumber": block.sequence_number,
            "offsets": block.offset_interval.to_document() if block.offset_interval else None,
            "rows": block.num_records,
        }
        for block in receipt.blocks
    ]
    counts = {"rows": receipt.rows, "duplicates": receipt.duplicates, "deadLetters": receipt.dead_letters}
    return {"blocks": blocks, **counts, "seconds": round(seconds, 3)}


def _sent_text(found: dict[str, Any]) -> str:
    positions = ", ".join(
        f"{each}:{start}..{found['next'][each] - 1}" for each, start in sorted(found["start"].items())
    )
    place = f" at positions {positions}" if positions else ""
    return (
        f"{found['records']} records in {found['messages']} messages on topic {found['topic']}{place}, "
        f"{found['sentSeconds']:.2f} s"
    )


def _receipt_text(found: dict[str, Any]) -> str:
    lines = [_sent_text(found)]
    for block in found["blocks"]:
        offsets = block["offsets"]
        place = f"offsets {offsets['start']}..{offsets['end']}" if offsets else "no rows"
        lines.append(f"block {block['hash']}  {place}")
    lines.append(
        f"{found['rows']} rows, {found['duplicates']} duplicates, {found['deadLetters']} dead letters "
        f"in {len(found['blocks'])} blocks, {found['seconds']:.2f} s"
    )
    return "\n".join(lines)


@contextmanager
def _progress(files: Sequence[Path]) -> Iterator[Any]:
    """A bar of bytes on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    total = None if STDIN in files else sum(path.stat().st_size for path in files)
    columns = (TextColumn("sending"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.update(task, advance=size)


@contextmanager
def _waiting(records: int) -> Iterator[Any]:
    """A bar of committed records on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda receipt: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("committing"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=records)
        yield lambda receipt: bar.update(task, completed=receipt.rows + receipt.duplicates + receipt.dead_letters)
