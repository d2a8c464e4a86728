"""Plain tables: columns of text, aligned."""

from __future__ import annotations

from collections.abc import Sequence


def columns_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows below their header, each column as wide as its widest cell."""
    table = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )
