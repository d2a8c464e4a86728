from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.records import Records
from odf_common.metadata.sources import ReadStepGeoJson, ReadStepNdGeoJson
from tests.unit.odf_common.ingest.sources import letters, messages

POINT = b'{"type":"Feature","properties":{"z":1,"a":"x"},"geometry":{"type":"Point","coordinates":[10.100, 20]}}'
POINT_TEXT = '{"coordinates":[10.100,20],"type":"Point"}'


def read(*values: bytes | None, known: pa.Schema | None = None, columns: tuple[str, ...] | None = None) -> Records:
    return reader_of(ReadStepNdGeoJson(ddl_schema=columns), known).read(messages(*values))


def read_collection(*values: bytes | None, columns: tuple[str, ...] | None = None) -> Records:
    return reader_of(ReadStepGeoJson(ddl_schema=columns), None).read(messages(*values))


def collection(*features: bytes) -> bytes:
    return b'{"type":"FeatureCollection","features":[' + b", ".join(features) + b"]}"


def test_a_feature_is_a_row_of_its_properties_and_its_geometry_as_text() -> None:
    records = read(POINT)
    assert records.rows.to_pylist() == [{"a": "x", "geometry": POINT_TEXT, "z": 1}]
    assert records.rows.column_names == ["a", "geometry", "z"]


def test_a_collection_has_a_row_for_each_feature() -> None:
    nothing = b'{"geometry":null,"properties":null,"type":"Feature","id":7}'
    text = (
        b'{"name":"n","crs":{"a":[1]},\n"features":[\n' + POINT + b",\n" + nothing + b'\n],"type":"FeatureCollection"}'
    )
    for value in (text, collection(POINT, nothing)):
        records = read_collection(value)
        assert records.rows["geometry"].to_pylist() == [POINT_TEXT, None]
        assert records.rows["z"].to_pylist() == [1, None]
        assert records.unreadable == []


def test_declared_columns_are_taken_by_name() -> None:
    records = read_collection(collection(POINT), columns=("geometry STRING", "z DOUBLE", "q BIGINT"))
    assert records.rows.to_pylist() == [{"geometry": POINT_TEXT, "z": 1.0, "q": None}]


def test_geometries_are_written_as_the_reference_does() -> None:
    feature = (
        b'{ "type": "Feature", "bbox": [1, 2], "properties": {"a": {"b": [1]}}, "geometry": {"type":'
        b' "GeometryCollection", "geometries": [ {"type": "Point", "coordinates": [1, 2.50]}, {"type": "LineString", '
        b'"coordinates": [ [1e1, 2], [3, 4] ]} ] } }'
    )
    assert read(feature).rows["geometry"].to_pylist() == [
        '{"geometries":[{"coordinates":[1,2.50],"type":"Point"},'
        '{"coordinates":[[1e1,2],[3,4]],"type":"LineString"}],"type":"GeometryCollection"}'
    ]


@pytest.mark.parametrize(
    ("bad", "code", "reason"),
    [
        (b"[1]", "InvalidJson", "a GeoJSON feature is an object"),
        (b"{}", "InvalidJson", 'a GeoJSON feature has "type":"Feature", found no type'),
        (b'{"type":"Point"}', "InvalidJson", 'a GeoJSON feature has "type":"Feature", found "Point"'),
        (b'{"type":"Feature","properties":[]}', "InvalidJson", "the properties of a feature are an object or null"),
        (
            b'{"type":"Feature","geometry":"POINT(1 2)"}',
            "InvalidJson",
            "the geometry of a feature is an object or null",
        ),
        (
            b'{"type":"Feature","properties":{"geometry":1},"geometry":null}',
            "DuplicateKey",
            "column 'geometry' is given twice",
        ),
        (
            b'{"type":"Feature","properties":{"a":1}',
            "InvalidJson",
            "not JSON: unexpected end of data (at character 39)",
        ),
        (POINT.replace(b"10.100", b"10.1.0"), "InvalidJson", None),
        (POINT.replace(b'"x"', b'"\xff"'), "InvalidUtf8", None),
        (POINT.replace(b'"x"', b"1"), "WrongType", "column 'a': expected STRING, found number 1"),
        (
            POINT.replace(b'"x"', b"[" * 70 + b"]" * 70),
            "TooDeep",
            "objects and arrays lie more than 64 deep within each other",
        ),
    ],
)
def test_a_bad_feature_is_a_dead_letter_and_its_neighbours_are_rows(bad: bytes, code: str, reason: str | None) -> None:
    records = read(POINT + b"\n" + bad + b"\n" + POINT, columns=("a STRING", "geometry STRING"))
    assert records.rows["geometry"].to_pylist() == [POINT_TEXT] * 2
    [letter] = records.unreadable
    assert (letter.offset, letter.index, letter.code, letter.data) == (0, 1, code, bad)
    assert reason in (None, letter.reason)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (POINT, "InvalidJson"),
        (b"[]", "InvalidJson"),
        (collection(POINT)[:-2], "InvalidJson"),
        (b'{"features":{}}', "InvalidJson"),
        (b"", "EmptyMessage"),
        (None, "Tombstone"),
    ],
)
def test_what_is_no_collection_is_a_dead_letter(bad: bytes | None, code: str) -> None:
    records = read_collection(collection(POINT), bad, collection(b"1", POINT))
    assert records.rows.num_rows == 2
    assert letters(records.unreadable) == [(1, None, code), (2, 0, "InvalidJson")]


def features() -> st.SearchStrategy[dict[str, Any]]:
    numbers = st.integers(-180, 180) | st.floats(-90, 90, allow_nan=False)
    points = st.lists(numbers, min_size=2, max_size=3)
    geometries = st.one_of(
        st.none(),
        st.builds(lambda at: {"type": "Point", "coordinates": at}, points),
        st.builds(lambda line: {"coordinates": line, "type": "LineString"}, st.lists(points, min_size=1, max_size=3)),
    )
    properties = st.dictionaries(st.sampled_from("abc"), st.none() | st.text(max_size=4), max_size=3)
    return st.builds(
        lambda first, shape, rest: {"type": "Feature", "properties": first, "geometry": shape, **rest},
        properties | st.none(),
        geometries,
        st.dictionaries(st.sampled_from(["id", "bbox"]), st.integers(), max_size=1),
    )


@settings(max_examples=50)
@given(st.lists(features(), max_size=5), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_lines_and_collections_hold_the_same_features(found: list[dict[str, Any]], marks: tuple[str, str]) -> None:
    texts = [json.dumps(feature, separators=marks).encode() for feature in found]
    columns = ("a STRING", "b STRING", "c STRING", "geometry STRING")
    lines, whole = read(*texts, columns=columns), read_collection(collection(*texts), columns=columns)
    assert lines.rows.equals(whole.rows)
    for feature, row in zip(found, lines.rows.to_pylist(), strict=True):
        geometry = row.pop("geometry")
        assert (None if geometry is None else json.loads(geometry)) == feature["geometry"]
        assert {name: value for name, value in row.items() if value is not None} == {
            name: value for name, value in (feature["properties"] or {}).items() if value is not None
        }
