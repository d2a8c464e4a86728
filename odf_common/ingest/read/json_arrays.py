"""The texts of the elements of many JSON arrays, found by looking at all bytes at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.read.lines import Indices, Lines, trimmed

_BLANKS = b" \t\r\n"
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_ENOUGH = 1 << 20  # bytes; so many are looked at together, because every mark takes some memory

_QUOTE, _COMMA = ord('"'), ord(",")
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("{"), ord("[")]] = 1
_STEPS[[ord("}"), ord("]")]] = -1
_IS_MARK = _STEPS != 0
_IS_MARK[[_QUOTE, _COMMA]] = True


class Elements:
    """Collects the elements of messages, each on one line, just as they are there."""

    def __init__(self, path: Sequence[str], before: bytes | None = None) -> None:
        self._path = path
        self._before = before or b"".join(b"{%b:" % orjson.dumps(key) for key in path) + b"["
        self._after = b"]" + b"}" * len(path)
        self._bodies: list[bytes] = []
        self._size = 0
        self._texts: list[pa.Array] = []
        self._rows: list[Indices] = []

    def take_plain(self, row: int, message: bytes) -> bool:
        """Take a message that is JSON without question and holds nothing but the array; False if it is not one."""
        message = message.strip(_BLANKS)
        if not (message.startswith(self._before) and message.endswith(self._after)):
            return False
        try:
            value = orjson.loads(message)
        except orjson.JSONDecodeError:
            return False
        for key in self._path:
            value = value[key]
        body = message[len(self._before) : len(message) - len(self._after)]
        if not isinstance(value, list) or (self._path and _closes_more(body)):
            return False
        if value:
            self._bodies.append(body.translate(_LINE_BREAKS) if b"\n" in body or b"\r" in body else body)
            self._rows.append(np.full(len(value), row, np.int64))
            self._size += len(body)
            if self._size >= _ENOUGH:
                self._cut()
        return True

    def take(self, row: int, elements: Sequence[bytes]) -> None:
        """Take elements that were found in another way."""
        self._cut()
        self._texts.append(pa.array(elements, pa.binary()))
        self._rows.append(np.full(len(elements), row, np.int64))

    def lines(self, messages: pa.Table) -> Lines:
        """All elements."""
        self._cut()
        texts = pa.concat_arrays([pa.array([], pa.binary()), *self._texts])
        return Lines(texts, np.concatenate([np.empty(0, np.int64), *self._rows]), messages)

    def _cut(self) -> None:
        if self._bodies:
            # Without line breaks inside, so that those between elements are the only ones.
            data = np.frombuffer(bytearray(b",".join(self._bodies)), np.uint8)
            places, kinds, depths = _marks(data)
            data[places[(kinds == _COMMA) & (depths == 0)]] = ord("\n")
            whole = pa.Array.from_buffers(
                pa.binary(), 1, [None, pa.py_buffer(np.array([0, len(data)], np.int32)), pa.py_buffer(data)]
            )
            self._texts.append(trimmed(pc.split_pattern(whole, b"\n").flatten()))
        self._bodies, self._size = [], 0


def _closes_more(body: bytes) -> bool:
    """Whether a bracket closes what is around the body: then it is not one array's."""
    return bool(_marks(np.frombuffer(body, np.uint8))[2].min(initial=0) < 0)


def _marks(data: npt.NDArray[np.uint8]) -> tuple[Indices, npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Places of brackets and commas outside of strings, which they are, and the depth behind each."""
    if (data == ord("\\")).any():
        data = np.frombuffer(_ESCAPE.sub(b"__", data.tobytes()), np.uint8)
    places = np.flatnonzero(_IS_MARK[data])
    kinds = data[places]
    outside = (np.cumsum(kinds == _QUOTE, dtype=np.int32) & 1 == 0) & (kinds != _QUOTE)
    places, kinds = places[outside], kinds[outside]
    return places, kinds, np.cumsum(_STEPS[kinds], dtype=np.int32)
