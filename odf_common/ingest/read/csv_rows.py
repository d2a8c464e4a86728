"""CSV messages taken apart into the texts of their rows, so that no row can swallow another."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.messages import Code, Problem, Unreadable
from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.json_lines import no_utf8
from odf_common.ingest.read.lines import (
    BOM,
    Indices,
    Lines,
    contains_byte,
    lines_of,
)

QUOTES = Problem(Code.INVALID_CSV, "a quoted value is not closed, or something follows its closing quote")

_NUL = Problem(Code.INVALID_CSV, "the row holds a NUL byte: send text in UTF-8")


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """The characters with a meaning, one byte each."""

    separator: str = ","
    quote: str = '"'
    escape: str | None = None

    def row_pattern(self) -> re.Pattern[bytes]:
        """A row with its end. Quotes within a value that does not begin with one are just quotes."""
        separator, quote = (re.escape(mark.encode()) for mark in (self.separator, self.quote))
        escape = re.escape(self.escape.encode()) if self.escape else rb"(?!)"
        plain = rb"(?:(?!%b)(?:%b.|[^%b\r\n%b])(?:%b.|[^%b\r\n%b])*+)?+"
        no = self.escape.replace("\\", "\\\\").replace("]", "\\]").replace("^", "\\^").encode() if self.escape else b""
        unquoted = plain % (quote, escape, separator, no, escape, separator, no)
        quoted = rb"%b(?:%b.|%b%b|[^%b%b])*+%b" % (quote, escape, quote, quote, quote, no, quote)
        value = rb"(?:%b|%b)" % (quoted, unquoted)
        return re.compile(rb"(%b(?:%b%b)*+)(?:\r\n|\n|\r|\Z)" % (value, separator, value), re.DOTALL)

    def line_pattern(self) -> str:
        """The same for a whole line, in the words of Arrow's RE2."""
        separator, quote = (re.escape(mark) for mark in (self.separator, self.quote))
        escape = re.escape(self.escape or "")
        escaped = f"{escape}.|" if escape else ""
        inner = f"{escaped}{quote}{quote}|[^{quote}{escape}]"
        first = f"{escaped}[^{quote}{separator}{escape}\\r\\n]"
        later = f"{escaped}[^{separator}{escape}\\r\\n]"
        value = f"(?:{quote}(?:{inner})*{quote}|(?:(?:{first})(?:{later})*)?)"
        return f"(?s)^{value}(?:{separator}{value})*$"


@dataclass(frozen=True, slots=True)
class CsvRows:
    """Rows that are well-formed by themselves, and the dead letters on the way there."""

    lines: Lines
    index: Indices
    """The place of each row in its message."""
    problems: dict[int, Problem]


def csv_rows(
    messages: pa.Table, csv_format: CsvFormat, *, max_size: int = MAX_MESSAGE_SIZE
) -> tuple[CsvRows, list[Unreadable]]:
    """The rows of all messages, blank lines left out."""
    lines, bad = lines_of(messages, blanks="\r\n", max_size=max_size)
    marks = [csv_format.quote, csv_format.escape or csv_format.quote, "\r"]
    if any(contains_byte(lines.texts, ord(mark)) for mark in marks):
        whole = pc.match_substring_regex(lines.texts, csv_format.line_pattern())
        if not pc.all(whole).as_py():
            odd = lines.message[~whole.to_numpy(zero_copy_only=False)]
            return _with_quotes(messages, csv_format, odd, max_size)
    return CsvRows(lines, _index(lines.message), _text_problems(lines.texts)), bad


def _with_quotes(
    messages: pa.Table, csv_format: CsvFormat, rows: Indices, max_size: int
) -> tuple[CsvRows, list[Unreadable]]:
    """With a closer look at those messages that have rows of several lines, or bad ones."""
    odd = np.zeros(messages.num_rows, np.bool_)
    odd[rows] = True
    plain, bad = lines_of(messages.filter(pa.array(~odd)), blanks="\r\n", max_size=max_size)
    texts: list[bytes] = []
    parents: list[int] = []
    broken: list[int] = []
    pattern = csv_format.row_pattern()
    for row, value in zip(
        np.flatnonzero(odd).tolist(), messages["value"].filter(pa.array(odd)).to_pylist(), strict=True
    ):
        found = _rows_of(value.removeprefix(BOM), pattern)
        broken += [len(texts) + number for number, (_, is_whole) in enumerate(found) if not is_whole]
        texts += [text for text, _ in found]
        parents += [row] * len(found)
    message = np.concatenate([np.flatnonzero(~odd)[plain.message], np.array(parents, np.int64)])
    order = np.argsort(message, kind="stable")
    joined = pa.concat_arrays([plain.texts, pa.array(texts, pa.binary())]).take(pa.array(order))
    lines = Lines(joined, message[order], messages)
    places = np.flatnonzero(np.isin(order, np.array(broken, np.int64) + len(plain.texts)))
    problems = dict.fromkeys(places.tolist(), QUOTES) | _text_problems(lines.texts)
    return CsvRows(lines, _index(lines.message), problems), bad


def _rows_of(value: bytes, pattern: re.Pattern[bytes]) -> list[tuple[bytes, bool]]:
    """The rows that are not empty, and whether they are well-formed."""
    rows, position = [], 0
    while position < len(value):
        match = pattern.match(value, position)
        if match is None:  # goes on behind the line, so that the rows below are read
            end = value.find(b"\n", position)
            text, position = (value[position:], len(value)) if end < 0 else (value[position:end], end + 1)
        else:
            text, position = match[1], match.end()
        if text:
            rows.append((text, match is not None))
    return rows


def _text_problems(rows: pa.Array) -> dict[int, Problem]:
    """Rows that are no text."""
    if not contains_byte(rows, 0):
        return no_utf8(rows)
    marked = np.flatnonzero(pc.match_substring(rows, b"\0").to_numpy(zero_copy_only=False))
    return dict.fromkeys(marked.tolist(), _NUL) | no_utf8(rows)


def _index(parents: Indices) -> Indices:
    return np.arange(len(parents)) - np.searchsorted(parents, parents)
