"""Payloads of any size, read in parts: bounded memory, and the speed of the read steps on large batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.cutting import CsvRecords, cut_counted
from odf_common.ingest.messages import MESSAGES, Code, Problem, Unreadable
from odf_common.ingest.pieces import BYTE_ORDER_MARK, MAX_AROUND_SIZE, MAX_RECORD_SIZE, RecordTooLargeError
from odf_common.ingest.read.choice import csv_options
from odf_common.ingest.read.csv_rows import CsvFormat
from odf_common.ingest.read.foreign import HEAD_SIZE, foreign_problem
from odf_common.ingest.read.records import InvalidPayloadError, Reader, Records
from odf_common.ingest.read.whole import WholeReader
from odf_common.metadata.sources import ReadStep, ReadStepCsv, ReadStepGeoJson, ReadStepJson

PART_SIZE = 32 << 20
"""Bytes that are read at once; large enough that threads have work, small enough that several parts fit into memory."""

_JSON_SIZE = 4 << 20  # bytes; arrays are looked at as Python objects, which are large
_READ_SIZE = 256 << 10
_BLANKS = b" \t\r\n"

__all__ = ["PART_SIZE", "InvalidPayloadError", "read_payload"]


def read_payload(
    reader: Reader, step: ReadStep, file: BinaryIO, message: pa.Table, *, chunk_size: int = PART_SIZE
) -> Iterator[Records]:
    """The records of a payload, in parts; none if it is empty and nothing tells its columns.

    `reader` is the reader of `step`. `message` is the row of the message (schema `MESSAGES`) that stands for the
    payload: its place and time are those of all records. The indices of dead letters count through all parts, and each
    part has the columns of those before it.

    Raises InvalidPayloadError where the payload as a whole is something else, and MalformedBytesError, which names the
    place, where it stops being what it should be; parts that came before are to be thrown away then.
    """
    found = False
    for records in _parts_read(reader, step, file, message, chunk_size):
        found = True
        yield records
    if not found:
        nothing = reader.read(MESSAGES.empty_table())
        if nothing.rows.column_names:
            yield nothing


def _parts_read(
    reader: Reader, step: ReadStep, file: BinaryIO, message: pa.Table, chunk_size: int
) -> Iterator[Records]:
    if isinstance(reader, WholeReader):
        yield from _tables_read(reader, file, message, chunk_size)
        return
    count = 0
    for part in _text_parts(reader, step, file, message, chunk_size):
        records = _counted(reader.read(_with_value(message, part), max_size=len(part)), count)
        if records.count or records.rows.column_names:
            yield records
        count += records.count
        reader = reader.following(records.rows.schema)


def _text_parts(
    reader: Reader, step: ReadStep, file: BinaryIO, message: pa.Table, chunk_size: int
) -> Iterator[memoryview]:
    """Payloads of the same format, each of whole records."""
    source = _Text(file)
    if isinstance(step, ReadStepJson | ReadStepGeoJson):
        pieces = cut_counted(step, source.chunks(), max_size=min(chunk_size, _JSON_SIZE))
        return (memoryview(piece.data) for piece in pieces)
    if isinstance(step, ReadStepCsv):
        return _csv_parts(reader, step, source, message, chunk_size)
    return _cut(source, chunk_size, _line_end, what="line")


class _Text:
    """A file of text in UTF-8, without byte order mark."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = file.read(HEAD_SIZE)
        problem = foreign_problem(head)
        if problem is not None:
            raise InvalidPayloadError(problem)
        self._head = head.removeprefix(BYTE_ORDER_MARK)

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end."""
        parts, self._head = [self._head[:size]], self._head[size:]
        left = size - len(parts[0])
        while left > 0 and (chunk := self._file.read(left)):
            parts.append(chunk)
            left -= len(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def unread(self, data: bytes) -> None:
        """Give back what was read last."""
        self._head = data + self._head

    def chunks(self) -> Iterator[bytes]:
        """All of it."""
        while chunk := self.read(_READ_SIZE):
            yield chunk


FindEnd = Callable[[bytes, int, bool], int | None]
"""(buffer, where to begin, whether the payload ends with it) → the end of the last whole record; None if there is none.
"""


def _cut(source: _Text, size: int, find_end: FindEnd, *, what: str, prefix: bytes = b"") -> Iterator[memoryview]:
    """Parts of whole records, each behind the prefix."""
    start, rest, wanted = len(prefix), memoryview(b""), size
    while True:
        data = source.read(wanted)
        ended = len(data) < wanted
        buffer = b"".join((prefix, rest, data))
        end = find_end(buffer, start, ended)
        if end is None:
            if len(buffer) - start > max(size, MAX_RECORD_SIZE):
                raise RecordTooLargeError(what, 1, limit=max(size, MAX_RECORD_SIZE))
            rest, wanted = memoryview(buffer)[start:], max(len(buffer), size)
            continue
        if end > start:
            yield memoryview(buffer)[:end]
        if ended:
            return
        rest, wanted = memoryview(buffer)[end:], size


def _line_end(buffer: bytes, start: int, ended: bool) -> int | None:
    return len(buffer) if ended else buffer.rfind(b"\n", start) + 1 or None


def _csv_parts(
    reader: Reader, step: ReadStepCsv, source: _Text, message: pa.Table, chunk_size: int
) -> Iterator[memoryview]:
    rows = _CsvEnds(step)
    if not step.header:
        yield from _cut(source, chunk_size, rows.last, what="CSV record")
        return
    first = source.read(2 * MAX_AROUND_SIZE)
    end = rows.first(first, len(first) < 2 * MAX_AROUND_SIZE)
    header = first[:end].strip(b"\r\n")
    if end is None or len(header) > MAX_AROUND_SIZE:
        raise RecordTooLargeError("CSV header", 1, limit=MAX_AROUND_SIZE)
    if not header:
        return
    source.unread(first[end:])
    alone = memoryview(header)
    letters = reader.read(_with_value(message, alone)).unreadable
    if letters:
        raise InvalidPayloadError.of(letters[0].code, f"the header of the CSV: {letters[0].reason}")
    parts = _cut(source, chunk_size, rows.last, what="CSV record", prefix=header + b"\n")
    yield from itertools.chain([next(parts, alone)], parts)


class _CsvEnds:
    """Finds the ends of CSV records, where a quoted value may hold line ends."""

    def __init__(self, step: ReadStepCsv) -> None:
        self._records = CsvRecords(step)
        self._format: CsvFormat = csv_options(step).csv_format
        self._marks = [mark.encode() for mark in (self._format.quote, self._format.escape) if mark]

    def first(self, buffer: bytes, ended: bool) -> int | None:
        found = self._records.first(buffer, 0, ended)
        return None if found is None else found.end

    def last(self, buffer: bytes, start: int, ended: bool) -> int | None:
        end = _line_end(buffer, start, ended)
        if ended or end is None or not any(buffer.find(mark, start) >= 0 for mark in self._marks):
            return end
        if self._are_whole_lines(memoryview(buffer)[start:end]):
            return end
        found = self._records.last(buffer[start:], len(buffer) - start, False)
        return None if found is None else start + found.end

    def _are_whole_lines(self, data: memoryview) -> bool:
        lines = pc.split_pattern(_one_value(data), b"\n").flatten()
        return bool(pc.all(pc.match_substring_regex(lines, self._format.line_pattern())).as_py())


def _tables_read(reader: WholeReader, file: BinaryIO, message: pa.Table, chunk_size: int) -> Iterator[Records]:
    group: list[pa.Table] = []
    for table in reader.tables(file):
        if group and sum(part.nbytes for part in group) + table.nbytes > chunk_size:
            yield _of_message(message, group)
            group = []
        group.append(table)
    if group and any(table.column_names for table in group):
        yield _of_message(message, group)


def _of_message(message: pa.Table, tables: list[pa.Table]) -> Records:
    rows = pa.concat_tables(tables, promote_options="default")
    times = message["timestamp"].take(pa.array(np.zeros(rows.num_rows, np.int64)))
    return Records(rows=rows, timestamps=times, unreadable=[])


def _with_value(message: pa.Table, value: memoryview) -> pa.Table:
    index = message.schema.get_field_index("value")
    return message.slice(0, 1).set_column(index, message.schema.field(index), _one_value(value))


def _one_value(data: memoryview) -> pa.Array:
    """Without a copy."""
    offsets = pa.py_buffer(np.array([0, len(data)], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(data)])


def _counted(records: Records, before: int) -> Records:
    """The same, with indices that count all records of the payload."""
    unreadable = [
        _shifted(letter, before)
        for letter in records.unreadable
        if letter.code != Code.EMPTY  # blank lines at the end of a part
    ]
    for letter in unreadable:
        if len(letter.data) > MAX_RECORD_SIZE:
            raise RecordTooLargeError("record", (letter.index or 0) + 1)
    made = records.letters
    if made is None:
        return replace(records, unreadable=unreadable)

    def letters(refused: Sequence[tuple[int, Problem]]) -> list[Unreadable]:
        return [_shifted(letter, before) for letter in made(refused)]

    return replace(records, unreadable=unreadable, letters=letters)


def _shifted(letter: Unreadable, before: int) -> Unreadable:
    if letter.index is None:  # a part that holds nothing else
        return replace(letter, index=before, data=letter.data.strip(_BLANKS))
    return replace(letter, index=before + letter.index)
