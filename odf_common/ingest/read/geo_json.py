"""GeoJson and NdGeoJson: a row for each feature, its properties and its geometry as JSON text."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # the decoder's own, in C

import numpy as np
import orjson
import pyarrow as pa

from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.pieces import MAX_MESSAGE_SIZE
from odf_common.ingest.read.geo_json_form import BEFORE_FEATURES, FEATURES, GEOMETRY
from odf_common.ingest.read.json import elements_of
from odf_common.ingest.read.json_lines import MAX_DEPTH, depth, json_problem
from odf_common.ingest.read.json_objects import read_objects
from odf_common.ingest.read.lines import Indices, lines_of
from odf_common.ingest.read.records import Records
from odf_common.ingest.read.row_schema import RowSchema

_SPACE = re.compile(r"[ \t\r\n]*")
_USUAL = re.compile(
    rb'\{\s*+"type"\s*+:\s*+"Feature"\s*+,\s*+"properties"\s*+:\s*+\{((?:[^{}"\\]++|"[^"\\]*+")*+)\}\s*+,'
    rb'\s*+"geometry"\s*+:\s*+\{\s*+"type"\s*+:\s*+("[A-Za-z]++")\s*+,\s*+"coordinates"\s*+:\s*+'
    rb"(\[[-+.\deE,\s\[\]]++)\}\s*+\}",
)
"""The features that most programs write, with nothing nested in the properties."""
_BLANKS = b" \t\r\n"
_decode = json.JSONDecoder().raw_decode


class GeoJsonReader:
    """Reads features: from the array of a FeatureCollection, or one in each line."""

    def __init__(self, schema: RowSchema, *, has_lines: bool) -> None:
        assert len(schema.wire)
        assert schema.table is not None
        self._schema = schema
        self._has_lines = has_lines

    def read(self, messages: pa.Table, *, max_size: int = MAX_MESSAGE_SIZE) -> Records:
        """See `Reader`."""
        if self._has_lines:
            features, bad = lines_of(messages, max_size=max_size)
        else:
            features, bad = elements_of(messages, (FEATURES,), max_size=max_size, before=BEFORE_FEATURES)
        flat, places, problems = flattened(features.texts)
        objects = read_objects(flat, self._schema)
        problems |= {int(places[line]): problem for line, problem in objects.problems.items()}
        bad += features.unreadable(problems, always_index=not self._has_lines)
        bad.sort(key=lambda letter: (letter.partition, letter.offset, letter.index or 0))
        times = messages["timestamp"].take(pa.array(features.message[places[objects.lines]]))
        letters = features.letters(places[objects.lines], always_index=not self._has_lines)
        return Records(rows=objects.rows, timestamps=times, unreadable=bad, letters=letters)

    def following(self, rows: pa.Schema) -> GeoJsonReader:
        """See `Reader`."""
        return GeoJsonReader(self._schema.following(rows), has_lines=self._has_lines)


def flattened(features: pa.Array) -> tuple[pa.Array, Indices, dict[int, Problem]]:
    """Objects of properties with the geometry as a text, the places of their features, and what is wrong with others.

    Properties keep their own bytes, so that they are judged like the objects of any other JSON.
    """
    rows: list[bytes] = []
    places: list[int] = []
    problems: dict[int, Problem] = {}
    for place, feature in enumerate(features.to_pylist()):
        try:
            rows.append(_flat(feature))
        except (ValueError, RecursionError) as error:
            problems[place] = _problem_of(feature, error)
        else:
            places.append(place)
    return pa.array(rows, pa.binary()), np.array(places, np.int64), problems


class _NoFeatureError(ValueError):
    """JSON, but no feature."""


class _TooDeepError(ValueError):
    """JSON that nobody looks into."""


def _flat(feature: bytes) -> bytes:
    usual = _USUAL.fullmatch(feature)
    if usual is None:
        return _flat_unusual(feature)
    properties, kind, coordinates = usual.groups()
    orjson.loads(coordinates)  # raises ValueError for what only looks like coordinates
    text = b'{\\"coordinates\\":%b,\\"type\\":\\"%b\\"}' % (coordinates.translate(None, _BLANKS), kind[1:-1])
    properties = properties.strip(_BLANKS)
    return b'{%b%b"geometry":"%b"}' % (properties, b"," if properties else b"", text)


def _flat_unusual(feature: bytes) -> bytes:
    if depth(feature) > MAX_DEPTH:
        raise _TooDeepError(f"objects and arrays lie more than {MAX_DEPTH} deep within each other")
    found = members(feature.decode())
    if found.get("type") != '"Feature"':
        raise _NoFeatureError(f'a GeoJSON feature has "type":"Feature", found {found.get("type", "no type")[:40]}')
    properties, geometry = found.get("properties", "null"), found.get(GEOMETRY, "null")
    if properties == "null":
        properties = "{}"
    if not properties.startswith("{"):
        raise _NoFeatureError("the properties of a feature are an object or null")
    if geometry != "null" and not geometry.startswith("{"):
        raise _NoFeatureError("the geometry of a feature is an object or null")
    text = "null" if geometry == "null" else orjson.dumps(compact(geometry)).decode()
    inner = properties[1:-1].strip()
    return f'{{{inner}{"," if inner else ""}"{GEOMETRY}":{text}}}'.encode()


def members(text: str) -> dict[str, str]:
    """The texts of the members of a JSON object, just as they are; ValueError where it is no object."""
    found: dict[str, str] = {}
    at = _space(text, 0)
    if text[at : at + 1] != "{":
        raise _NoFeatureError("a GeoJSON feature is an object")
    at = _space(text, at + 1)
    while text[at : at + 1] != "}" or found:
        if text[at : at + 1] != '"':
            raise ValueError(f"expected a key (at character {at + 1})")
        key, at = scanstring(text, at + 1, True)
        at = _space(text, at)
        if text[at : at + 1] != ":":
            raise ValueError(f"expected : (at character {at + 1})")
        at = _space(text, at + 1)
        if key in found:
            raise _NoFeatureError(f"the key {key!r} is given twice")
        end = _decode(text, at)[1]
        found[key] = text[at:end]
        at = _space(text, end)
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise ValueError(f"expected , (at character {at + 1})")
        at = _space(text, at + 1)
    if _space(text, at + 1) != len(text):
        raise ValueError(f"unexpected content after document (at character {at + 2})")
    return found


def compact(geometry: str) -> str:
    """A geometry without blanks, its keys in their order, its numbers as they are written: the reference's form."""
    if not geometry.startswith(("{", "[")):
        return geometry
    if '"' not in geometry:
        return "".join(geometry.split())
    if geometry.startswith("["):
        return f"[{','.join(map(compact, _items(geometry)))}]"
    return "{" + ",".join(f"{_quoted(key)}:{compact(value)}" for key, value in sorted(members(geometry).items())) + "}"


def _items(text: str) -> list[str]:
    items: list[str] = []
    at = _space(text, 1)
    while text[at] != "]":
        end = _decode(text, at)[1]
        items.append(text[at:end])
        at = _space(text, end)
        if text[at] == ",":
            at = _space(text, at + 1)
    return items


def _quoted(key: str) -> str:
    return orjson.dumps(key).decode()


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _problem_of(feature: bytes, error: Exception) -> Problem:
    if isinstance(error, _NoFeatureError):
        return Problem(Code.INVALID_JSON, str(error))
    if isinstance(error, UnicodeDecodeError):
        return Problem(Code.INVALID_UTF8, f"not UTF-8: {error.reason} (at byte {error.start + 1})")
    if isinstance(error, _TooDeepError):
        return Problem(Code.TOO_DEEP, str(error))
    return json_problem(feature) or Problem(Code.INVALID_JSON, f"not JSON: {error}")
