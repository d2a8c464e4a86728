"""CSV messages taken apart into the texts of their rows, so that no row can swallow another."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from odf_common.ingest.messages import Code, Problem, Unreadable
from odf_common.ingest.read.json_lines import no_utf8
from odf_common.ingest.read.lines import (
    Indices,
    Lines,
    blank_messages,
    combined,
    contains_byte,
    lines_of,
    with_content,
    without_bom,
)

QUOTES = Problem(Code.INVALID_CSV, "a quoted value is not closed, or something follows its closing quote")


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


@dataclass(frozen=True, slots=True)
class CsvRows:
    """Rows that are well-formed by themselves, and the dead letters on the way there."""

    lines: Lines
    index: Indices
    """The place of each row in its message."""
    problems: dict[int, Problem]


def csv_rows(messages: pa.Table, csv_format: CsvFormat) -> tuple[CsvRows, list[Unreadable]]:
    """The rows of all messages, blank lines left out."""
    marks = [csv_format.quote, csv_format.escape or csv_format.quote]
    values = combined(messages["value"])
    if any(contains_byte(values, ord(mark)) for mark in marks):
        return _with_quotes(messages, csv_format)
    lines, bad = lines_of(messages, blanks="\r\n")
    if contains_byte(lines.texts, ord("\r")):  # ends a row as well
        return _with_quotes(messages, csv_format)
    return CsvRows(lines, _index(lines.message), no_utf8(lines.texts)), bad


def _with_quotes(messages: pa.Table, csv_format: CsvFormat) -> tuple[CsvRows, list[Unreadable]]:
    whole, bad = with_content(messages)
    pattern = csv_format.row_pattern()
    texts: list[bytes] = []
    parents: list[int] = []
    broken: list[int] = []
    for place, value in enumerate(without_bom(whole.values).to_pylist()):
        position = 0
        while position < len(value):
            match = pattern.match(value, position)
            if match is None:  # goes on behind the line, so that the rows below are read
                end = value.find(b"\n", position)
                text, position = (value[position:], len(value)) if end < 0 else (value[position:end], end + 1)
                broken.append(len(texts))
            else:
                text, position = match[1], match.end()
            if text:
                texts.append(text)
                parents.append(place)
    places = np.array(parents, np.int64)
    bad += blank_messages(messages, whole, places)
    lines = Lines(pa.array(texts, pa.binary()), whole.rows[places], messages)
    problems = dict.fromkeys(broken, QUOTES) | no_utf8(lines.texts)
    return CsvRows(lines, _index(lines.message), problems), bad


def _index(parents: Indices) -> Indices:
    return np.arange(len(parents)) - np.searchsorted(parents, parents)
