"""Cut a payload of any length into Kafka messages of whole records, in one pass and bounded memory.

A message is a payload of its own in the same format: lines of NDJSON, a JSON array at the source's path, CSV with its
header. So the ingest job reads a small event and a piece of a large file alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from odf_common.errors import MalformedBytesError, OdfError
from odf_common.ingest.json_elements import json_pieces
from odf_common.ingest.pieces import (
    MAX_AROUND_SIZE,
    MAX_MESSAGE_SIZE,
    MAX_RECORD_SIZE,
    Piece,
    RecordTooLargeError,
    Source,
)
from odf_common.ingest.read.geo_json_form import BEFORE_FEATURES, FEATURES
from odf_common.metadata.sources import (
    ReadStep,
    ReadStepCsv,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
)

DEFAULT_SIZE = 256 << 10
"""Bytes; small enough that a batch can end near its limits, large enough that carrying messages costs nothing."""

_BLANK = b" \t\r\n"
_INDENTED = re.compile(rb"\n[ \t\r\n]")
"""What may be a line that holds nothing. Looked for by one search: there are gigabytes of lines to count."""

__all__ = [
    "DEFAULT_SIZE",
    "MAX_RECORD_SIZE",
    "Piece",
    "RecordTooLargeError",
    "UncuttableFormatError",
    "cut",
    "cut_counted",
]


class UncuttableFormatError(OdfError):
    """Payloads of this read step cannot be cut into messages: each is one message, or an upload."""

    def __init__(self, read_step: ReadStep) -> None:
        super().__init__(
            f"payloads of {read_step.kind} cannot be cut into messages: "
            f"send files of at most {MAX_MESSAGE_SIZE} bytes, or upload them"
        )


def cut(read_step: ReadStep, chunks: Iterable[bytes], *, max_size: int = DEFAULT_SIZE) -> Iterator[bytes]:
    """The messages of a payload that comes in chunks of any size; none if it holds no records.

    Messages have at most `max_size` bytes, except where one record alone is larger. RecordTooLargeError says which
    record has more than MAX_RECORD_SIZE bytes, MalformedBytesError where the payload stops being what it should be;
    the messages before that are whole.
    """
    return (piece.data for piece in cut_counted(read_step, chunks, max_size=max_size))


def cut_counted(read_step: ReadStep, chunks: Iterable[bytes], *, max_size: int = DEFAULT_SIZE) -> Iterator[Piece]:
    """As `cut`, with the number of records in each message."""
    match read_step:
        case ReadStepNdJson() | ReadStepNdGeoJson():
            return _Lines(_last_line_end, what="line").cut(Source(chunks), max_size)
        case ReadStepJson():
            return json_pieces(Source(chunks), read_step.sub_path, max_size=max_size)
        case ReadStepGeoJson():
            return json_pieces(Source(chunks), FEATURES, max_size=max_size, before=BEFORE_FEATURES)
        case ReadStepCsv():
            return _csv_pieces(read_step, Source(chunks), max_size)
        case _:
            raise UncuttableFormatError(read_step)


@dataclass(frozen=True, slots=True)
class _Ends:
    """The last place at or before a limit where a record ends, and how many records are before it."""

    end: int
    records: int


FindEnd = Callable[[bytes, int, bool], _Ends | None]
"""(buffer, limit, whether the payload ends with the buffer) → where to cut; None if the first record is not over.

When the first record is longer than the limit, its end.
"""


class _Lines:
    """Cuts what consists of records one after another."""

    def __init__(self, find_end: FindEnd, *, what: str, header: bytes = b"") -> None:
        self._find_end = find_end
        self._what = what
        self._header = header

    def cut(self, source: Source, max_size: int) -> Iterator[Piece]:
        limit = max(max_size - len(self._header), 1)
        number = 0
        wanted = limit
        while True:
            source.fill(wanted)
            if not source.buffer:
                return
            found = self._find_end(source.buffer, limit, source.ended)
            if found is None:
                if len(source.buffer) > MAX_RECORD_SIZE:
                    raise RecordTooLargeError(self._what, number + 1)
                # Twice as much each time, so that a long record is not searched over and over.
                wanted = 2 * len(source.buffer)
                continue
            if found.end > MAX_RECORD_SIZE:
                raise RecordTooLargeError(self._what, number + 1)
            taken = source.take(found.end).rstrip(b"\r\n")
            number += found.records
            wanted = limit
            if found.records:
                yield Piece(self._header + taken, found.records)


def _last_line_end(buffer: bytes, limit: int, ended: bool) -> _Ends | None:
    if ended and len(buffer) <= limit:
        return _Ends(len(buffer), _lines(buffer))
    end = buffer.rfind(b"\n", 0, limit) + 1 or buffer.find(b"\n", limit) + 1
    if not end:
        if not ended:
            return None
        end = len(buffer)
    return _Ends(end, _lines(buffer[:end]))


def _lines(data: bytes) -> int:
    """How many lines hold something."""
    data = data.strip(_BLANK)
    if not data:
        return 0
    if _INDENTED.search(data):
        return sum(1 for line in data.split(b"\n") if line.strip(_BLANK))
    return data.count(b"\n") + 1


def _csv_pieces(read_step: ReadStepCsv, source: Source, max_size: int) -> Iterator[Piece]:
    find_end = CsvRecords(read_step)
    header = b""
    if read_step.header:
        first = next(_Lines(find_end.first, what="CSV record").cut(source, 1), None)
        if first is None:
            return
        header = first.data.lstrip(b"\r\n") + b"\n"
        if len(header) > MAX_AROUND_SIZE:
            raise RecordTooLargeError("CSV header", 1, limit=MAX_AROUND_SIZE)
    yield from _Lines(find_end.last, what="CSV record", header=header).cut(source, max_size)


class CsvRecords:
    """Finds the ends of CSV records, where a quoted field may hold line ends."""

    def __init__(self, read_step: ReadStepCsv) -> None:
        self._quote = _one_byte("quote", read_step.quote or '"')
        separator = re.escape(_one_byte("separator", read_step.separator or ","))
        quote = re.escape(self._quote)
        mark = _one_byte("escape", read_step.escape) if read_step.escape else b""
        escape = b"" if mark == self._quote else re.escape(mark)  # a quote before a quote is what it always is
        inner = rb"[^%b%b]++|%b%b" % (quote, escape, quote, quote) + (rb"|%b." % escape if escape else b"")
        plain = rb"[^%b\n]*+" % separator
        field = rb"(?:%b(?:%b)*+%b%b|(?!%b)%b)" % (quote, inner, quote, plain, quote, plain)
        self._record = re.compile(rb"%b(?:%b%b)*+(?:\n|\Z)" % (field, separator, field), re.DOTALL)

    def first(self, buffer: bytes, limit: int, ended: bool) -> _Ends | None:
        """The end of the first record."""
        start = len(buffer) - len(buffer.lstrip(_BLANK))
        end = self._end(buffer, start, ended)
        return None if end is None else _Ends(end, 1 if end > start else 0)

    def last(self, buffer: bytes, limit: int, ended: bool) -> _Ends | None:
        """The last end within the limit."""
        if self._quote not in buffer:
            return _last_line_end(buffer, limit, ended)
        position = records = 0
        while position < len(buffer):
            end = self._end(buffer, position, ended)
            if end is None or (end > limit and records):
                break
            records += bool(buffer[position:end].strip(_BLANK))
            position = end
        return _Ends(position, records) if position else None

    def _end(self, buffer: bytes, start: int, ended: bool) -> int | None:
        found = self._record.match(buffer, start)
        if found is None:
            # A quote that is never closed: the rest of the payload is one record, for the job to judge.
            return len(buffer) if ended else None
        complete = ended or found[0].endswith(b"\n")
        return found.end() if complete else None


def _one_byte(what: str, character: str) -> bytes:
    encoded = character.encode()
    if len(encoded) != 1:
        raise MalformedBytesError(f"the source's CSV {what} {character!r} is not one ASCII character")
    return encoded
