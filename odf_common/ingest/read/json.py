"""Json: an array of objects in each message, at the root or at a path of keys."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # the decoder's own, in C

import pyarrow as pa

from odf_common.ingest.messages import Code, Problem, Unreadable, unreadable
from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.json_arrays import Elements
from odf_common.ingest.read.json_lines import MAX_DEPTH, depth, json_problem
from odf_common.ingest.read.json_objects import read_objects
from odf_common.ingest.read.lines import Lines, with_text, without_bom
from odf_common.ingest.read.records import Records
from odf_common.ingest.read.row_schema import RowSchema

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_BREAKS = str.maketrans("\r\n", "  ")
_decode = json.JSONDecoder().raw_decode


class JsonReader:
    """Reads arrays of objects."""

    def __init__(self, schema: RowSchema, sub_path: str | None) -> None:
        assert len(schema.wire)
        assert schema.table is not None
        self._schema = schema
        self._path = tuple(sub_path.split(".")) if sub_path else ()

    def read(self, messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> Records:
        """See `Reader`."""
        elements, bad = elements_of(messages, self._path, max_size=max_size)
        objects = read_objects(elements.texts, self._schema)
        bad += elements.unreadable(objects.problems, always_index=True)
        bad.sort(key=lambda letter: (letter.partition, letter.offset, letter.index or 0))
        times = messages["timestamp"].take(pa.array(elements.message[objects.lines]))
        letters = elements.letters(objects.lines, always_index=True)
        return Records(rows=objects.rows, timestamps=times, unreadable=bad, letters=letters)

    def following(self, rows: pa.Schema) -> JsonReader:
        """See `Reader`."""
        return JsonReader(self._schema.following(rows), ".".join(self._path) or None)


def elements_of(
    messages: pa.Table, path: Sequence[str], *, max_size: int, before: bytes | None = None
) -> tuple[Lines, list[Unreadable]]:
    """The elements of the arrays of all messages, and the messages that have none.

    `before` is what most messages begin with, where that is more than the keys of the path.
    """
    whole, bad = with_text(messages, max_size=max_size)
    found = Elements(path, before)
    for row, value in zip(whole.rows.tolist(), without_bom(whole.values).to_pylist(), strict=True):
        if found.take_plain(row, value):
            continue
        try:
            found.take(row, array_elements(value, path))
        except _BadMessageError as error:
            data = messages["value"][row].as_py()
            bad.append(unreadable(messages, row, error.problem, index=None, data=data))
    return found.lines(messages), bad


class _BadMessageError(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def array_elements(message: bytes, path: Sequence[str]) -> list[bytes]:
    """The texts of the elements, each on one line, just as they are in the message."""
    if depth(message) > MAX_DEPTH + len(path) + 1:
        raise _BadMessageError(
            Problem(Code.TOO_DEEP, f"objects and arrays lie more than {MAX_DEPTH} deep within each other")
        )
    try:
        text = message.decode()
        scan = _Scan(text)
        scan.document(path)
    except UnicodeDecodeError as error:
        problem = Problem(Code.INVALID_UTF8, f"not UTF-8: {error.reason} (at byte {error.start + 1})")
        raise _BadMessageError(problem) from error
    except (ValueError, RecursionError) as error:
        # Python's parser is lenient in some places; what it refuses, the other refuses too, in better words.
        found = json_problem(message)
        reason = f"not JSON: {error}"
        problem = found if found is not None and not _is_json(found) else Problem(Code.INVALID_JSON, reason)
        raise _BadMessageError(problem) from error
    if scan.found is None:
        where = f"an array at {'.'.join(path)!r}" if path else "an array of objects"
        raise _BadMessageError(Problem(Code.INVALID_JSON, f"expected {where}, the message has none"))
    return scan.found


def _is_json(problem: Problem) -> bool:
    return problem.reason.startswith("expected a JSON object")


@dataclass
class _Scan:
    """Walks through a JSON text down to an array."""

    text: str
    found: list[bytes] | None = None

    def document(self, path: Sequence[str]) -> None:
        """The whole text; ValueError where it is not JSON."""
        end = self._space(self._value(self._space(0), path))
        if end != len(self.text):
            raise ValueError(f"unexpected content after document (at character {end + 1})")

    def _value(self, start: int, path: Sequence[str]) -> int:
        first = self.text[start : start + 1]
        if path and first == "{":
            return self._object(start, path)
        if not path and first == "[":
            return self._array(start)
        return _decode(self.text, start)[1]

    def _object(self, start: int, path: Sequence[str]) -> int:
        seen = False
        at = self._space(start + 1)
        if self.text[at : at + 1] == "}":
            return at + 1
        while True:
            self._expect('"', at)
            key, at = scanstring(self.text, at + 1, True)
            at = self._space(at)
            self._expect(":", at)
            at = self._space(at + 1)
            if key != path[0]:
                at = _decode(self.text, at)[1]
            elif seen:
                raise ValueError(f"the key {key!r} is given twice")
            else:
                seen = True
                at = self._value(at, path[1:])
            at = self._space(at)
            if self.text[at : at + 1] == "}":
                return at + 1
            self._expect(",", at)
            at = self._space(at + 1)

    def _array(self, start: int) -> int:
        elements: list[bytes] = []
        at = self._space(start + 1)
        if self.text[at : at + 1] != "]":
            while True:
                end = _decode(self.text, at)[1]
                elements.append(self.text[at:end].translate(_LINE_BREAKS).encode())
                at = self._space(end)
                if self.text[at : at + 1] == "]":
                    break
                self._expect(",", at)
                at = self._space(at + 1)
        self.found = elements
        return at + 1

    def _space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        assert match is not None
        return match.end()

    def _expect(self, mark: str, at: int) -> None:
        if self.text[at : at + 1] != mark:
            raise ValueError(f"expected {mark} (at character {at + 1})")
