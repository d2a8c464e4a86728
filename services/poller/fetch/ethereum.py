"""Fetch step EthereumLogs: the logs of confirmed blocks that a filter lets through, decoded by an event's signature."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import FetchStepEthereumLogs
from services.poller.errors import FetchDamagedError, FetchUnreachableError, StepRefusedError
from services.poller.fetch.ethereum_event import EventSignature
from services.poller.fetch.ethereum_filter import LogFilter, parsed_filter
from services.poller.fetch.ethereum_node import Node, TooManyLogsError
from services.poller.fetch.ethereum_rows import payload_of
from services.poller.fetched import Fetched, FetchJob, Found, UpToDate
from services.poller.settings import PollerSettings
from services.poller.templates import names_in

ETHEREUM_BLOCK = "odf-streams/ethereum-block"
"""The state: the number of the last block whose logs were taken."""

_NOTED_RANGE = 10_000  # blocks without a log, after which it is worth a block of ours to say how far we are


def check_logs(step: FetchStepEthereumLogs, settings: PollerSettings) -> tuple[LogFilter, EventSignature | None]:
    """The filter and the event that are meant; StepRefusedError for what is not understood."""
    _url_of(step, settings)
    chosen = parsed_filter(step.filter)
    event = None if step.signature is None else EventSignature.parse(step.signature)
    return (chosen if event is None else chosen.of_event(event.topic)), event


def _url_of(step: FetchStepEthereumLogs, settings: PollerSettings) -> str:
    url = step.node_url or settings.ethereum_nodes.get(str(step.chain_id))
    if url is None:
        raise StepRefusedError(
            "the fetch step EthereumLogs names no nodeUrl, and ODF_POLLER_ETHEREUM_NODES has none for chain "
            f"{'of no id' if step.chain_id is None else step.chain_id}"
        )
    if not names_in(url) and not url.startswith(("http://", "https://")):
        raise StepRefusedError("the nodeUrl begins with http:// or https://: nodes are asked by JSON-RPC over HTTP")
    return url


def fetch_logs(step: FetchStepEthereumLogs, job: FetchJob) -> Found:
    """The logs behind the last block that was taken."""
    chosen, event = check_logs(step, job.settings)
    with Node(job.secrets.filled(_url_of(step, job.settings)), job) as node:
        if step.chain_id is not None and (found := node.chain_id()) != step.chain_id:
            raise FetchDamagedError(f"the node serves chain {found}, not {step.chain_id}")
        span = _next_span(node, chosen, job)
        if span is None:
            return UpToDate("there is no new confirmed block")
        logs, covered = _logs(node, chosen, *span, job)
        is_whole = covered == span[1]
        if not logs and is_whole and covered - span[0] + 1 < _NOTED_RANGE:
            return UpToDate(f"no log in blocks {span[0]} to {covered}")
        payload = payload_of(logs, node.timestamps(logs), event, job)
    return Fetched(
        file=payload.file,
        media_type=payload.media_type,
        state=FetchedState(kind=ETHEREUM_BLOCK, value=str(covered)),
        has_more=not is_whole,
    )


def _next_span(node: Node, chosen: LogFilter, job: FetchJob) -> tuple[int, int] | None:
    """The first and the last block to look at."""
    newest = node.block_number()
    last = _last_block(job)
    if last is not None and newest < last:
        raise FetchUnreachableError(f"the node is at block {newest}, and block {last} was taken already")
    start = max(chosen.first_block, 0 if last is None else last + 1)
    end = newest - job.settings.ethereum_confirmations
    if chosen.last_block is not None:
        end = min(end, chosen.last_block)
    return (start, end) if start <= end else None


def _last_block(job: FetchJob) -> int | None:
    value = job.state_of(ETHEREUM_BLOCK)
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal()):
        raise FetchDamagedError(f"the state {value[:40]!r} in the chain is no number of a block")
    return int(value)


@dataclass(slots=True)
class _Range:
    """How many blocks to ask for at once: half of them where that is too many, and slowly more again."""

    size: int
    most: int

    def shrink(self) -> None:
        self.size //= 2

    def grow(self) -> None:
        self.size = min(self.size + max(1, self.size // 4), self.most)


def _logs(node: Node, chosen: LogFilter, start: int, end: int, job: FetchJob) -> tuple[list[dict[str, Any]], int]:
    """Logs from a block on, and the last block that they cover; not all blocks if there is very much."""
    found: list[dict[str, Any]] = []
    at_once = _Range(job.settings.ethereum_range, job.settings.ethereum_range)
    at = start
    enough = job.started + job.settings.fetch_timeout_s / 2
    while at <= end and len(found) < job.settings.ethereum_max_logs and (at == start or time.monotonic() < enough):
        to = min(at + at_once.size - 1, end)
        try:
            found += node.logs(chosen, at, to)
        except TooManyLogsError as error:
            if to == at:
                raise FetchUnreachableError(f"the node does not give the logs of block {at}: {error}") from error
            at_once.size = to - at + 1
            at_once.shrink()
        else:
            at_once.grow()
            at = to + 1
    return found, at - 1
