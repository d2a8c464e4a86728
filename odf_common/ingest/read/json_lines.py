"""What Arrow's JSON parser lets pass, or would choke on, found by looking at all lines at once."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read.lines import parts_of

MAX_DEPTH = 64
"""Objects and arrays within each other."""

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NOT_A_NUMBER = r"[:,\[]\s*-?(NaN|Inf)"
_NUMBER_NAMES = re.compile(rb"NaN|Inf")
_OPENING = (ord("{"), ord("["))
_CLOSING = (ord("}"), ord("]"))
_SET_BIT = 0x20  # turns [ into {


def text_problems(lines: pa.Array) -> dict[int, Problem]:
    """Line → what makes it no JSON object that may be parsed. What else is wrong, the parser finds."""
    problems: dict[int, Problem] = {}
    problems.update(_no_numbers(lines))
    problems.update(_no_objects(lines))
    problems.update(_too_deep(lines))
    problems.update(no_utf8(lines))
    return problems


def json_problem(line: bytes) -> Problem | None:
    """What is wrong with one line of JSON, if anything is."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return not_json(error)
    return None if isinstance(value, dict) else no_object(value)


def not_json(error: orjson.JSONDecodeError) -> Problem:
    """The problem of what is no JSON at all."""
    return Problem(Code.INVALID_JSON, f"not JSON: {error.msg} (at character {error.pos + 1})")


def no_object(value: object) -> Problem:
    """The problem of JSON that is something else than an object."""
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return Problem(Code.INVALID_JSON, f"expected a JSON object, found {names.get(type(value), 'null')}")


def depth(line: bytes) -> int:
    """How deep objects and arrays lie within each other; where there are few of them, how many they are at most."""
    opened = line.count(b"{") + line.count(b"[")
    if opened <= MAX_DEPTH:
        return opened
    marks = np.frombuffer(_STRINGS.sub(b"", line), np.uint8)
    steps = np.isin(marks, _OPENING).astype(np.int64) - np.isin(marks, _CLOSING)
    return int(np.cumsum(steps).max(initial=0))


def no_utf8(lines: pa.Array) -> dict[int, Problem]:
    """Lines that are not UTF-8."""
    try:
        lines.cast(pa.string())
    except pa.ArrowInvalid:
        texts = enumerate(lines.to_pylist())
        return {index: problem for index, text in texts if (problem := _utf8_problem(text)) is not None}
    return {}


def _utf8_problem(text: bytes) -> Problem | None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return Problem(Code.INVALID_UTF8, f"not UTF-8: {error.reason} (at byte {error.start + 1})")
    return None


def _no_objects(lines: pa.Array) -> dict[int, Problem]:
    """With braces around every line, no value can begin in one and end in another: see `json_objects`."""
    fine = pc.and_(pc.starts_with(lines, b"{"), pc.ends_with(lines, b"}"))
    if pc.all(fine).as_py():
        return {}
    problems = {}
    places = np.flatnonzero(~fine.to_numpy(zero_copy_only=False))
    for index, line in zip(places.tolist(), lines.take(pa.array(places)).to_pylist(), strict=True):
        found = json_problem(line) if depth(line) <= MAX_DEPTH else None
        problems[index] = found or Problem(Code.INVALID_JSON, "a JSON object begins with { and ends with }")
    return problems


def _too_deep(lines: pa.Array) -> dict[int, Problem]:
    suspects = np.flatnonzero(_openings(lines) > MAX_DEPTH)
    problem = Problem(Code.TOO_DEEP, f"objects and arrays lie more than {MAX_DEPTH} deep within each other")
    return {int(index): problem for index in suspects if depth(lines[int(index)].as_py()) > MAX_DEPTH}


def _openings(lines: pa.Array) -> npt.NDArray[np.int64]:
    """How many brackets each line opens, in texts too; 0 where none can be deep."""
    sizes = pc.binary_length(lines).to_numpy()
    counts = np.zeros(len(lines), np.int64)
    longest = sizes.max(initial=0)
    if longest <= 2 * MAX_DEPTH:
        return counts
    starts = range(0, 1 << 62, len(next(parts_of(lines))))
    parts = zip(starts, parts_of(lines), strict=False)
    places = np.concatenate([start + np.flatnonzero((part | _SET_BIT) == _OPENING[0]) for start, part in parts])
    if not (places[MAX_DEPTH:] - places[:-MAX_DEPTH] < longest).any():
        return counts
    ends = np.cumsum(sizes)
    counts += np.searchsorted(places, ends) - np.searchsorted(places, ends - sizes)
    return counts


def _may_name_number(part: npt.NDArray[np.uint8]) -> bool:
    capital = (part == ord("N")).any() or (part == ord("I")).any()
    return bool(capital) and _NUMBER_NAMES.search(part.data) is not None


def _no_numbers(lines: pa.Array) -> dict[int, Problem]:
    """NaN and Infinity, which Arrow takes for numbers."""
    if not any(map(_may_name_number, parts_of(lines, overlap=2))):
        return {}
    suspects = pc.match_substring_regex(lines, _NOT_A_NUMBER)
    found = {}
    for index in np.flatnonzero(suspects.to_numpy(zero_copy_only=False)):
        line = lines[int(index)].as_py()
        problem = json_problem(line) if depth(line) <= MAX_DEPTH else None
        if problem is not None:
            found[int(index)] = problem
    return found
