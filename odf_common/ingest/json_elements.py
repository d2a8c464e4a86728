"""The elements of a JSON array, at the root or at a path of keys, as the bytes that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from odf_common.errors import MalformedBytesError
from odf_common.ingest.pieces import MAX_RECORD_SIZE, Piece, RecordTooLargeError, Source

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(rb'[^\s\[\]{},:"]++')
_FLAT = re.compile(rb'[{\[](?:[^{}\[\]"]++|"(?:[^"\\]++|\\.)*+")*+[}\]]', re.DOTALL)
_STEP = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^{}\[\]"]++|[{}\[\]]', re.DOTALL)
_CHUNK = 1 << 16
_SMALLEST_RUN = 1 << 14  # bytes; for less it is not worth looking at many elements together
_DEPTH = 6  # of what is found by one pattern; enough for the polygons of a feature


def _nested_pattern(depth: int) -> bytes:
    inner = rb"|" + _nested_pattern(depth - 1) if depth > 1 else b""
    return rb'[{\[](?:[^{}\[\]"]++|"(?:[^"\\]++|\\.)*+"%b)*+[}\]]' % inner


_RUN = re.compile(rb"(?:%b[ \t\r\n]*+,[ \t\r\n]*+)++" % _nested_pattern(_DEPTH), re.DOTALL)
_OPENING, _CLOSING = b"{[", b"}]"


def json_pieces(source: Source, sub_path: str | None, *, max_size: int, before: bytes | None = None) -> Iterator[Piece]:
    """Messages that hold arrays at the same path as the payload does.

    `before` is what they begin with, where that is more than the keys of the path.
    """
    keys = sub_path.split(".") if sub_path else []
    before = before or b"".join(b"{%b:" % orjson.dumps(key) for key in keys) + b"["
    after = b"]" + b"}" * len(keys)
    limit = max_size - len(before) - len(after)
    for group in _groups(_elements(source, keys, limit), limit):
        for run in [group] if isinstance(group, Piece) else _readable_runs(group):
            yield Piece(before + run.data + after, run.records)


def _groups(elements: Iterator[bytes | Piece], max_size: int) -> Iterator[list[bytes] | Piece]:
    group: list[bytes] = []
    size = 0
    for element in elements:
        if isinstance(element, Piece):
            if group:
                yield group
            yield element
            group, size = [], 0
            continue
        if group and size + len(element) + 1 > max_size:
            yield group
            group, size = [], 0
        group.append(element)
        size += len(element) + 1
    if group:
        yield group


def _readable_runs(group: list[bytes]) -> Iterator[Piece]:
    """The elements in their order, each unreadable one by itself: it must not take its neighbours along."""
    if len(group) == 1 or _is_readable(b"[" + b",".join(group) + b"]"):
        yield _joined(group)
        return
    run: list[bytes] = []
    for element in group:
        if _is_readable(element):
            run.append(element)
            continue
        if run:
            yield _joined(run)
        yield _joined([element])
        run = []
    if run:
        yield _joined(run)


def _joined(elements: list[bytes]) -> Piece:
    return Piece(b",".join(elements), len(elements))


def _count(elements: bytes) -> int | None:
    """How many elements these are; None if they are not JSON."""
    try:
        return len(orjson.loads(b"[" + elements + b"]"))
    except ValueError:
        return None


def _is_readable(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except ValueError:
        return False
    return True


def _elements(source: Source, keys: list[str], max_size: int) -> Iterator[bytes | Piece]:
    """Elements; where many follow each other that are readable, these together, in pieces of at most `max_size`."""
    scanner = _Scanner(source)
    if scanner.next_byte() == b"":
        return
    for key in keys:
        scanner.descend(key)
    where = f"at {'.'.join(keys)!r}" if keys else "at its root"
    scanner.expect(b"[", f"an array {where}")
    if scanner.next_byte() == b"]":
        scanner.skip(1)
    else:
        number = 0
        while True:
            run = scanner.run(max_size)
            if run is not None:
                number += run.records
                yield run
                continue
            number += 1
            yield scanner.value(number)
            if scanner.expect_one_of(b",]", "',' or ']' after an element") == b"]":
                break
    if not keys and scanner.next_byte():
        raise scanner.error("nothing after the array")


class _Scanner:
    """Reads a JSON text from front to back."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._position = 0
        self._single_until = 0
        """The byte of the payload up to which elements are looked at one by one."""

    def error(self, expected: str) -> MalformedBytesError:
        found = self._source.buffer[self._position : self._position + 20]
        shown = repr(found.decode("utf-8", "replace")) if found else "the end"
        return MalformedBytesError(
            f"not the JSON that the source reads: expected {expected}, found {shown} "
            f"at byte {self._source.taken + self._position}"
        )

    def next_byte(self) -> bytes:
        """The next byte that is no space, b"" at the end; it stays where it is."""
        while True:
            found = _SPACE.match(self._source.buffer, self._position)
            assert found is not None
            self._position = found.end()
            if self._position < len(self._source.buffer):
                return self._source.buffer[self._position : self._position + 1]
            if self._source.ended:
                return b""
            self._more(_CHUNK)

    def skip(self, size: int) -> None:
        self._position += size

    def expect(self, byte: bytes, what: str) -> None:
        self.expect_one_of(byte, what)

    def expect_one_of(self, choice: bytes, what: str) -> bytes:
        byte = self.next_byte()
        if not byte or byte not in choice:
            raise self.error(what)
        self.skip(1)
        return byte

    def descend(self, key: str) -> None:
        """Go into an object, to the value of a key; where a key is repeated, to the first."""
        self.expect(b"{", f"an object with the key {key!r}")
        if self.next_byte() == b"}":
            raise self.error(f"the key {key!r}")
        while True:
            name = self.value(0)
            self.expect(b":", "':' after a key")
            if _is_key(name, key):
                return
            self.pass_value()
            if self.expect_one_of(b",}", "',' or '}' after a value") == b"}":
                raise self.error(f"the key {key!r} in the object before")

    def run(self, max_size: int) -> Piece | None:
        """Many elements, each with a comma behind it, if that is what comes next and they are readable."""
        if max_size < _SMALLEST_RUN or self._source.taken + self._position < self._single_until:
            return None
        self._more_after_position(max_size)
        found = _RUN.match(self._source.buffer, self._position, self._position + max_size)
        run = None if found is None or len(found[0]) < _SMALLEST_RUN else found[0].rstrip(b", \t\r\n")
        count = None if run is None else _count(run)
        if found is None or run is None or count is None:
            self._single_until = self._source.taken + self._position + max_size
            return None
        self._position = found.end()
        return Piece(run, count)

    def value(self, number: int) -> bytes:
        """The next value's bytes; `number` is what an error calls it."""
        opening = self.next_byte()
        if not opening or opening in b"]},:":
            raise self.error("a value")
        if opening in _OPENING:
            self._more_after_position(_CHUNK)
            flat = _FLAT.match(self._source.buffer, self._position)
            if flat is not None:
                return self._take(flat.end(), number)
            return self._nested(number)
        pattern = _STRING if opening == b'"' else _SCALAR
        return self._take(self._whole(pattern, number).end(), number)

    def pass_value(self) -> None:
        """Go behind the next value without keeping it."""
        if self.next_byte() not in (b"{", b"["):
            self.value(0)
            return
        depth = 0
        while True:
            step = self._whole(_STEP, 0)
            depth += _turn(step[0])
            self._position = step.end()
            if depth == 0:
                return
            self._forget()

    def _nested(self, number: int) -> bytes:
        start, depth = self._position, 0
        while True:
            step = self._whole(_STEP, number, since=start)
            depth += _turn(step[0])
            self._position = step.end()
            if depth == 0:
                self._position, end = start, self._position
                return self._take(end, number)

    def _whole(self, pattern: re.Pattern[bytes], number: int, *, since: int | None = None) -> re.Match[bytes]:
        """A match that more bytes would not make longer; the buffer from `since` on is kept."""
        start = self._position if since is None else since
        while True:
            found = pattern.match(self._source.buffer, self._position)
            if found is not None and (found.end() < len(self._source.buffer) or self._source.ended or _ends(found)):
                return found
            if len(self._source.buffer) - start > MAX_RECORD_SIZE:
                raise RecordTooLargeError("element", number)
            if self._source.ended:
                raise self.error("the end of a value")
            self._source.fill(2 * len(self._source.buffer) + _CHUNK)

    def _take(self, end: int, number: int) -> bytes:
        taken = self._source.buffer[self._position : end]
        if len(taken) > MAX_RECORD_SIZE:
            raise RecordTooLargeError("element", number)
        self._position = end
        return taken

    def _more_after_position(self, size: int) -> None:
        if len(self._source.buffer) - self._position < size and not self._source.ended:
            self._more(size)

    def _more(self, size: int) -> None:
        self._forget()
        self._source.fill(self._position + size)

    def _forget(self) -> None:
        self._source.take(self._position)
        self._position = 0


def _turn(step: bytes) -> int:
    if step in (b"{", b"["):
        return 1
    return -1 if step in (b"}", b"]") else 0


def _ends(found: re.Match[bytes]) -> bool:
    """Whether a match at the end of the buffer is whole by itself."""
    last = found[0][-1:]
    return last in b'{}[]"'


def _is_key(name: bytes, key: str) -> bool:
    try:
        return bool(orjson.loads(name) == key)
    except ValueError:
        return False
