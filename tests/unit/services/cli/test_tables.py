from __future__ import annotations

from services.cli.tables import columns_text, printable


def test_control_characters_are_not_shown() -> None:
    assert printable("a\x1b[2Jb\nc") == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}c"


def test_columns_are_aligned_and_safe() -> None:
    assert columns_text(["one", "two"], [["a\x07b", "c"]]) == "one  two\na\N{REPLACEMENT CHARACTER}b  c"
