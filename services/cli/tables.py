"""Plain tables: columns of text, aligned."""

from __future__ import annotations

from collections.abc import Sequence


def columns_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows below their header, each column as wide as its widest cell."""
    table = [list(header), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


def printable(text: str) -> str:
    """The text as it may be shown: control characters would let a stranger's words take over the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
