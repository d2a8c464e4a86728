"""`odf tail`: the last rows of a dataset, and those that come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.opening import DataDir, DatasetArgument, chain_of, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, reporting

if TYPE_CHECKING:
    from odf_common.repository.repository import Dataset
    from services.cli.block_topic import BlockFeed

Row = dict[str, Any]

_POLL_S = 1.0
_MAX_CELL = 60  # characters


@reporting
def tail(
    dataset: DatasetArgument,
    rows: Annotated[int, typer.Option("-n", "--rows", min=0, help="So many rows from the end.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new rows as blocks come.")] = False,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Iterator[str]:
    """Show the last rows of a dataset, as a table or as a JSON object per line."""
    settings = settings_of(data_dir)
    with ExitStack() as stack:
        repository = stack.enter_context(opened_repository(settings))
        opened = repository.open(parsed_ref(dataset))
        feed = None
        if follow:
            from odf_common.endpoints import bootstrap_servers
            from services.cli.block_topic import block_feed

            feed = stack.enter_context(block_feed(bootstrap_servers(settings)))
        known = chain_of(opened).state()
        last = list(_last_rows(opened, rows))
        lines = _Json() if output == Format.JSON else _Table(last)
        yield from map(lines.line, last)
        if feed is not None:
            yield from map(lines.line, _new_rows(opened, feed, known.next_offset))


def _last_rows(dataset: Dataset, count: int) -> Iterator[Row]:
    """The last rows of a chain, oldest first."""
    from odf_common.metadata.events import AddData, ExecuteTransform
    from services.cli.slice_rows import last_rows

    parts: list[list[Row]] = []
    for encoded in chain_of(dataset).blocks():
        if count <= 0:
            break
        event = encoded.block.event
        if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
            parts.append(last_rows(dataset.objects, event.new_data.physical_hash, count))
            count -= len(parts[-1])
    for part in reversed(parts):
        yield from part


def _new_rows(dataset: Dataset, feed: BlockFeed, next_offset: int) -> Iterator[Row]:
    from odf_common.wire.decode import decode_block
    from services.cli.slice_rows import rows_from

    while True:
        for block in feed.poll(_POLL_S):
            interval = block.offset_interval
            if block.dataset_id != dataset.entry.id or interval is None or interval.end < next_offset:
                continue
            event = decode_block(dataset.objects.get_block(block.block_hash)).block.event
            skipped = max(next_offset - interval.start, 0)
            yield from rows_from(dataset.objects, event.new_data.physical_hash, skipped)  # type: ignore[union-attr]
            next_offset = interval.end + 1


class _Json:
    def line(self, row: Row) -> str:
        from services.cli.slice_rows import json_line

        return json_line(row)


class _Table:
    """Columns as wide as in the first rows; a header comes with the first row, and when columns were added."""

    def __init__(self, first: list[Row]) -> None:
        self._names: list[str] = []
        self._widths: dict[str, int] = {}
        for row in first:
            for name, value in row.items():
                self._widths[name] = max(self._widths.get(name, len(name)), len(_cell(value)))

    def line(self, row: Row) -> str:
        line = self._joined({name: _cell(value) for name, value in row.items()})
        if list(row) == self._names:
            return line
        self._names = list(row)
        return self._joined({name: name for name in row}) + "\n" + line

    def _joined(self, cells: Row) -> str:
        return "  ".join(cell.ljust(self._widths.get(name, len(name))) for name, cell in cells.items()).rstrip()


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"
    # Control characters would let data take over the terminal.
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
