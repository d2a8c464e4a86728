"""Messages taken apart into lines of text, one record each, without a step per record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.messages import Code, Problem, Unreadable, all_unreadable, unreadable
from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.foreign import foreign_values

Indices = npt.NDArray[np.int64]

_NEWLINE = 10
BLANKS = " \t\r\n"
"""What JSON calls whitespace."""
_LAST_BLANK = ord(" ")
_PART = 1 << 18  # bytes
_SEGMENT = 1 << 20  # bytes
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Whole:
    """The messages that have content, as they are, and where they stand in the batch."""

    values: pa.Array
    rows: Indices


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that are not blank, without blanks around them. `message` is the row of each line's message."""

    texts: pa.Array  # binary
    message: Indices
    messages: pa.Table

    def letters(
        self, rows: Indices, *, always_index: bool = False
    ) -> Callable[[Sequence[tuple[int, Problem]]], list[Unreadable]]:
        """Makes dead letters of rows, which were read from these lines."""

        def made(refused: Sequence[tuple[int, Problem]]) -> list[Unreadable]:
            problems = {int(rows[row]): problem for row, problem in refused}
            return self.unreadable(problems, always_index=always_index)

        return made

    def unreadable(self, problems: Mapping[int, Problem], *, always_index: bool = False) -> list[Unreadable]:
        """The dead letters of lines; such a line is the message itself if that has no other."""
        places = np.fromiter(problems, np.int64, len(problems))
        rows = self.message[places]
        first, end = np.searchsorted(self.message, rows), np.searchsorted(self.message, rows, "right")
        alone = (end - first == 1) & (not always_index)
        data = self.texts.take(pa.array(places)).to_pylist()
        for number in np.flatnonzero(alone).tolist():
            data[number] = self.messages["value"][int(rows[number])].as_py()
        indices = pa.array(places - first, mask=alone)
        return all_unreadable(self.messages, rows, problems.values(), indices.to_pylist(), data)


def with_content(messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> tuple[Whole, list[Unreadable]]:
    """The messages whose content can be looked at; of others it is enough to know their size."""
    values = combined(messages["value"])
    sizes = pc.binary_length(values)
    if not values.null_count and len(values) and _within(pc.min_max(sizes).as_py(), max_size):
        return Whole(values, np.arange(len(values))), []
    sizes = sizes.fill_null(-1).to_numpy(zero_copy_only=False)
    fine = (sizes > 0) & (sizes <= max_size)
    rows = np.flatnonzero(fine)
    bad = [_without_content(messages, int(row), int(sizes[row]), max_size) for row in np.flatnonzero(~fine)]
    return Whole(values.take(pa.array(rows)), rows), bad


def with_text(messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> tuple[Whole, list[Unreadable]]:
    """The messages whose content may be text: `with_content`, without those that are plainly something else."""
    whole, bad = with_content(messages, max_size=max_size)
    foreign = foreign_values(whole.values)
    if not foreign:
        return whole, bad
    rows = whole.rows[list(foreign)]
    data = whole.values.take(pa.array(list(foreign))).to_pylist()
    bad += all_unreadable(messages, rows, foreign.values(), [None] * len(rows), data)
    kept = np.setdiff1d(np.arange(len(whole.rows)), list(foreign))
    return Whole(whole.values.take(pa.array(kept)), whole.rows[kept]), bad


def lines_of(
    messages: pa.Table, *, blanks: str = BLANKS, max_size: int = MAX_MESSAGE_SIZE
) -> tuple[Lines, list[Unreadable]]:
    """The lines of all messages that have any, without blanks around them, and the messages that have none."""
    whole, bad = with_text(messages, max_size=max_size)
    texts, parents = _split(without_bom(whole.values))
    texts = trimmed(texts, blanks)
    blank = pc.equal(pc.binary_length(texts), 0)
    if pc.any(blank).as_py():
        kept = pc.invert(blank)
        texts = texts.filter(kept)
        parents = parents[kept.to_numpy(zero_copy_only=False)]
        bad += blank_messages(messages, whole, parents)
    return Lines(texts, whole.rows[parents], messages), bad


def combined(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def without_bom(values: pa.Array) -> pa.Array:
    """The same without the byte order mark that some editors put first."""
    marked = pc.starts_with(values, BOM)
    if not pc.any(marked).as_py():
        return values
    # Arrow's binary_slice fails where values are shorter than the start of the slice (26.0).
    return pa.array([value.removeprefix(BOM) for value in values.to_pylist()], pa.binary())


def trimmed(texts: pa.Array, blanks: str = BLANKS) -> pa.Array:
    """The same without blanks before and behind."""
    if not _has_blanks_around(texts):
        return texts
    # A view, because trimming wants texts; whether they are UTF-8 is found out later.
    return pc.ascii_trim(texts.view(pa.string()), characters=blanks).view(pa.binary())


def bytes_of(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """All bytes of binary values, one after another, without a copy."""
    offsets, data = texts.buffers()[1:]
    if not len(texts) or data is None:
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[1]]


def segments(texts: pa.Array) -> list[tuple[int, int]]:
    """The first value and the one behind the last of parts that are worth a thread; at least one part."""
    bounds = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    size = int(bounds[-1]) - int(bounds[0]) if len(texts) else 0
    if size <= 2 * _SEGMENT:
        return [(0, len(texts))]
    starts = np.searchsorted(bounds, bounds[0] + np.arange(0, size, _SEGMENT, dtype=np.int64))
    edges = np.unique([*np.minimum(starts, len(texts)).tolist(), len(texts)]).tolist()
    return list(itertools.pairwise(edges))


def contains_byte(texts: pa.Array, byte: int) -> bool:
    """Whether any of the values has it."""
    return any((part == byte).any() for part in parts_of(texts))


def parts_of(texts: pa.Array, overlap: int = 0) -> Iterator[npt.NDArray[np.uint8]]:
    """All bytes in parts that fit the processor's cache, each with some bytes of the next."""
    data = bytes_of(texts)
    return (data[start : start + _PART + overlap] for start in range(0, len(data), _PART))


def _has_blanks_around(texts: pa.Array) -> bool:
    if not len(texts):
        return False
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts, ends = offsets[:-1], offsets[1:]
    if (starts == ends).any():
        return True
    data = np.frombuffer(texts.buffers()[2], np.uint8)
    return bool((data[starts] <= _LAST_BLANK).any() or (data[ends - 1] <= _LAST_BLANK).any())


def _within(sizes: dict[str, Any], max_size: int) -> bool:
    return bool(sizes["min"] > 0 and sizes["max"] <= max_size)


def _without_content(messages: pa.Table, row: int, size: int, max_size: int) -> Unreadable:
    if size < 0:
        problem, data = Problem(Code.TOMBSTONE, "the message has no value"), b""
    elif size == 0:
        problem, data = Problem(Code.EMPTY, "the message is empty"), b""
    else:
        reason = f"the message has {size} bytes, at most {max_size} are read"
        problem, data = Problem(Code.TOO_LARGE, reason), messages["value"][row].as_py()
    return unreadable(messages, row, problem, index=None, data=data)


def _split(values: pa.Array) -> tuple[pa.Array, Indices]:
    if not contains_byte(values, _NEWLINE):
        return values, np.arange(len(values))
    lists = pc.split_pattern(values, b"\n")
    return lists.flatten(), pc.list_parent_indices(lists).to_numpy()


def blank_messages(messages: pa.Table, whole: Whole, parents: Indices) -> list[Unreadable]:
    """The messages that are no parent of any record."""
    full = np.zeros(len(whole.values), np.bool_)
    full[parents] = True
    problem = Problem(Code.EMPTY, "the message holds nothing but blanks")
    return [
        unreadable(messages, int(whole.rows[row]), problem, index=None, data=whole.values[int(row)].as_py())
        for row in np.flatnonzero(~full)
    ]
