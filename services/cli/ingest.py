"""`odf ingest`: files into a running system."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.opening import (
    DataDir,
    DatasetArgument,
    SourceOption,
    opened_repository,
    parsed_ref,
    parsed_time,
    settings_of,
)
from services.cli.reporting import STDIN, Format, Output, Report, failure, reporting

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.messages.block_appended import AppendedBlock
    from odf_common.settings import Settings
    from services.cli.block_topic import BlockFeed
    from services.cli.payloads import Payloads
    from services.cli.producing import Outgoing, Sent
    from services.cli.receipts import Receipt
    from services.cli.receiving_source import Receiver

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE…", help="What the source reads, - for standard input.", show_default=False)
]
MediaType = Annotated[
    str | None,
    typer.Option(help="The files' format, such as text/csv.", show_default="told by their names, else the source's"),
]


@reporting
def ingest(
    dataset: DatasetArgument,
    files: Files,
    source: SourceOption = None,
    media_type: MediaType = None,
    event_time: Annotated[
        str | None, typer.Option(help="For records without their own (RFC 3339).", show_default="now")
    ] = None,
    event_id: Annotated[
        str | None, typer.Option(help="Take the file once: sent again with this id it is a duplicate.")
    ] = None,
    create_source: Annotated[
        bool, typer.Option("--create-source", help="Add a push source that appends, if the dataset has none.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until blocks hold everything, and print the receipt.")] = True,
    timeout: Annotated[float, typer.Option(min=0, help="Give up waiting when no block came for so many seconds.")] = 60,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Send files to a push source of a running system, and wait for the blocks that hold their records.

    Files larger than 1 MiB go through the upload area, as do formats that cannot be cut; each is taken as a whole or
    not at all. With merge strategy Snapshot each file is one snapshot.
    """
    from odf_common.endpoints import bootstrap_servers
    from services.cli.payloads import MAX_EVENT_ID, is_event_id
    from services.cli.producing import Sender
    from services.cli.receiving_source import Receiver

    timestamp_ms = None if event_time is None else _milliseconds(event_time)
    if event_id is not None and not is_event_id(event_id):
        # An id that is empty by mistake would make all files but the first one duplicates.
        raise typer.BadParameter(
            f"an id has 1 to {MAX_EVENT_ID} printable characters, without blanks around them", param_hint="--event-id"
        )
    if event_id is not None and len(files) > 1:
        raise typer.BadParameter("an id names a single file; send the others apart", param_hint="--event-id")
    settings = settings_of(data_dir)
    servers = bootstrap_servers(settings)
    began = time.monotonic()
    sender = Sender(servers)
    with ExitStack() as stack:
        repository = stack.enter_context(opened_repository(settings))
        entry = repository.catalog.dataset(parsed_ref(dataset))
        receiver = Receiver.of(repository, entry, source, create_for=(files, media_type) if create_source else None)
        with _progress(files) as on_read:
            payloads = _payloads(settings, receiver, media_type, timestamp_ms, event_id, on_read)
            connect = partial(_connect, servers, receiver, stack, wait=wait)
            feed, outgoing = _while_connecting(connect, payloads, files)
            sent = sender.send(receiver.binding.topic, outgoing)
        found = _sent_data(receiver.binding, sent, time.monotonic() - began)
        if not sent.messages or feed is None:
            return Report(_sent_text(found), found)
        receipt = _receipt(feed, entry, receiver.binding, sent, timeout)
    if receipt is None:
        hint = f"`odf doctor {entry.alias} {receiver.binding.source_name}` says where it is stuck"
        return failure("NotCommitted", f"sent, but no block came for {timeout:g} s; {hint}", **found)
    found |= _receipt_data(receipt, time.monotonic() - began)
    return Report(_receipt_text(found), found)


def _payloads(
    settings: Settings,
    receiver: Receiver,
    media_type: str | None,
    timestamp_ms: int | None,
    event_id: str | None,
    on_read: Any,
) -> Payloads:
    from odf_common.uploads import UploadArea
    from services.cli.payloads import Payloads

    return Payloads(
        source=receiver.source,
        dataset_id=receiver.binding.dataset_id,
        area=UploadArea(settings.uploads_folder),
        max_size=settings.max_upload_size,
        media_type=media_type,
        timestamp_ms=timestamp_ms,
        event_id=event_id,
        on_read=on_read,
    )


def _connect(servers: str, receiver: Receiver, stack: ExitStack, *, wait: bool) -> BlockFeed | None:
    """Nothing may be sent before there is a topic, and before what is told of new blocks is heard."""
    from services.cli.block_topic import block_feed

    receiver.ensure_topic(servers)
    return stack.enter_context(block_feed(servers)) if wait else None


def _while_connecting(
    connect: Callable[[], BlockFeed | None], payloads: Payloads, files: Sequence[Path]
) -> tuple[BlockFeed | None, Iterator[Outgoing]]:
    """The broker's answers are waited for while the first file is being read."""
    messages = payloads.messages(files)
    with ThreadPoolExecutor(1, thread_name_prefix="connect") as pool:
        connecting = pool.submit(connect)
        first = list(islice(messages, 1))
        try:
            feed = connecting.result()
        except BaseException:
            payloads.forget(first)
            raise
    return feed, chain(first, messages)


def _milliseconds(event_time: str) -> int:
    """As Kafka has it, which knows no times before 1970."""
    milliseconds = parsed_time(event_time, hint="--event-time").ns // 1_000_000
    if milliseconds <= 0:
        raise typer.BadParameter("it must be after 1970-01-01T00:00:00Z", param_hint="--event-time")
    return milliseconds


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
    return {
        "blocks": [_block_data(block) for block in receipt.blocks],
        "rows": receipt.rows,
        "duplicates": receipt.duplicates,
        "deadLetters": receipt.dead_letters,
        "derived": receipt.derived,
        "late": receipt.late,
        "repeats": [repeat.model_dump(mode="json", by_alias=True) for repeat in receipt.repeats],
        "seconds": round(seconds, 3),
    }


def _block_data(block: AppendedBlock) -> dict[str, Any]:
    return {
        "hash": str(block.block_hash),
        "sequenceNumber": block.sequence_number,
        "offsets": block.offset_interval.to_document() if block.offset_interval else None,
        "rows": block.num_records,
    }


def _sent_text(found: dict[str, Any]) -> str:
    positions = ", ".join(
        f"{each}:{start}..{found['next'][each] - 1}" for each, start in sorted(found["start"].items())
    )
    place = f" at positions {positions}" if positions else ""
    what = f"{found['bytes']} bytes" if found["records"] is None else f"{found['records']} records"
    return f"{what} in {found['messages']} messages on topic {found['topic']}{place}, {found['sentSeconds']:.2f} s"


def _receipt_text(found: dict[str, Any]) -> str:
    lines = [_sent_text(found)]
    for block in found["blocks"]:
        offsets = block["offsets"]
        place = f"offsets {offsets['start']}..{offsets['end']}" if offsets else "no rows"
        lines.append(f"block {block['hash']}  {place}")
    lines += map(_repeat_text, found["repeats"])
    more = "".join(f", {found[name]} {name}" for name in ("derived", "late") if found[name])
    lines.append(
        f"{found['rows']} rows{more}, {found['duplicates']} duplicates, {found['deadLetters']} dead letters "
        f"in {len(found['blocks'])} blocks, {found['seconds']:.2f} s"
    )
    return "\n".join(lines)


def _repeat_text(repeat: dict[str, Any]) -> str:
    first = f"position {repeat['firstPartition']}:{repeat['firstOffset']}"
    place = f"block {repeat['block']}, {first}" if repeat["block"] else f"{first}, not in a block yet"
    return f"position {repeat['partition']}:{repeat['offset']} was taken before, in {place}"


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
def _waiting(records: int | None) -> Iterator[Any]:
    """A bar of committed records on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda receipt: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("committing"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=records)
        yield lambda receipt: bar.update(
            task, completed=receipt.rows + receipt.duplicates + receipt.dead_letters - receipt.derived
        )
