"""`odf pull`: poll a dataset's source now."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odf_common.errors import OdfError
from services.cli.opening import DataDir, DatasetArgument, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, failure, reporting

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry
    from services.cli.block_topic import BlockFeed
    from services.cli.receipts import Receipt
    from services.poller.poll import Outcome, Poller, Sent

_LOOK_EVERY_S = 0.2


@reporting
def pull(
    dataset: DatasetArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Fetch from a source that does not tell whether it has changed.")
    ] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait until blocks hold everything, and go on while there is more.")
    ] = True,
    timeout: Annotated[float, typer.Option(min=0, help="Give up waiting when no block came for so many seconds.")] = 60,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Poll the source of a dataset in a running system: fetch what is new, and wait for its blocks.

    The source is fetched by this process, with the environment that it has.
    """
    from odf_common.endpoints import bootstrap_servers
    from services.cli.block_topic import block_feed
    from services.poller.poll import Poller
    from services.poller.settings import PollerSettings

    settings = settings_of(data_dir)
    servers = bootstrap_servers(settings)
    polls: list[dict[str, Any]] = []
    with ExitStack() as stack:
        repository = stack.enter_context(opened_repository(settings))
        entry = repository.catalog.dataset(parsed_ref(dataset))
        poller = Poller(repository=repository, settings=settings, poller_settings=PollerSettings(), servers=servers)
        feed = stack.enter_context(block_feed(servers)) if wait else None
        has_more = True
        reason = None
        while has_more:
            try:
                sent = _polled(poller, entry, force=force, patience_s=timeout if wait else 0.0)
            except OdfError as error:
                if not polls:
                    raise
                return _broken_off(polls, error, output)
            if isinstance(sent, str):
                reason = sent
                break
            receipt = None if feed is None else _receipt(feed, entry, sent, timeout)
            polls.append(_described(sent, receipt))
            if feed is not None and receipt is None:
                hint = f"`odf doctor {entry.alias}` says where it is stuck"
                return failure("NotCommitted", f"sent, but no block came for {timeout:g} s; {hint}", polls=polls)
            has_more = sent.has_more and receipt is not None
    change = "polled" if polls else "up to date"
    found = {"dataset": str(entry.alias), "change": change, "reason": reason, "polls": polls}
    return Report(_text(found), found)


def _polled(poller: Poller, entry: DatasetEntry, *, force: bool, patience_s: float) -> Sent | str:
    """What one poll sent, or why there is nothing. Waits while somebody else polls, or has polled just now."""
    from services.poller.fetched import UpToDate
    from services.poller.lock import PollRunsError
    from services.poller.poll import PollWaitsError

    give_up = time.monotonic() + patience_s
    while True:
        try:
            outcome: Outcome = poller.poll(entry, force=force)
        except (PollRunsError, PollWaitsError):
            if time.monotonic() > give_up:
                raise
            time.sleep(_LOOK_EVERY_S)
        else:
            return outcome.reason if isinstance(outcome, UpToDate) else outcome


def _receipt(feed: BlockFeed, entry: DatasetEntry, sent: Sent, timeout_s: float) -> Receipt | None:
    from odf_common.chain.state import DEFAULT_SOURCE_NAME
    from services.cli.receipts import wait_for_blocks

    start, end = sent.positions.start, sent.positions.next
    return wait_for_blocks(feed.poll, entry.id, DEFAULT_SOURCE_NAME, start, end, timeout_s=timeout_s)


def _described(sent: Sent, receipt: Receipt | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bytes": sent.size,
        "messages": sent.messages,
        "start": sent.positions.start,
        "next": sent.positions.next,
        "state": None if sent.state is None else {"kind": sent.state.kind, "value": sent.state.value},
        "hasMore": sent.has_more,
    }
    if receipt is None:
        return found
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
    return found | {"blocks": blocks, **counts}


def _broken_off(polls: list[dict[str, Any]], error: OdfError, output: Format) -> Report:
    """What was polled before something went wrong is in blocks, and is told too."""
    if output == Format.TEXT:
        typer.echo("\n".join(line for poll in polls for line in _lines(poll)))
    return failure(error.code, str(error), polls=polls)


def _text(found: dict[str, Any]) -> str:
    if not found["polls"]:
        return f"{found['dataset']}: up to date, {found['reason']}"
    return "\n".join(line for poll in found["polls"] for line in _lines(poll))


def _lines(poll: dict[str, Any]) -> list[str]:
    messages = "1 message" if poll["messages"] == 1 else f"{poll['messages']} messages"
    lines = [f"fetched {poll['bytes']} bytes, sent in {messages}"]
    for block in poll.get("blocks", ()):
        offsets = block["offsets"]
        place = f"offsets {offsets['start']}..{offsets['end']}" if offsets else "no rows"
        lines.append(f"block {block['hash']}  {place}")
    if "blocks" in poll:
        counts = f"{poll['rows']} rows, {poll['duplicates']} duplicates, {poll['deadLetters']} dead letters"
        lines.append(f"{counts} in {len(poll['blocks'])} blocks")
    return lines
