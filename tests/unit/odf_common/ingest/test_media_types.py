from __future__ import annotations

import pytest

from odf_common.ingest.media_types import (
    MEDIA_TYPES,
    UnsupportedMediaTypeError,
    default_step,
    media_type_of,
    media_type_of_file,
    step_for,
)
from odf_common.metadata.sources import ReadStep, ReadStepCsv, ReadStepJson, ReadStepNdJson, ReadStepParquet

COLUMNS = ("a BIGINT", "b STRING")


def test_each_media_type_has_its_read_step() -> None:
    assert [default_step(media_type).kind for media_type in MEDIA_TYPES] == [
        "Csv", "Json", "NdJson", "GeoJson", "NdGeoJson", "Parquet", "EsriShapefile",
    ]  # fmt: skip
    assert tuple(media_type_of(default_step(media_type)) for media_type in MEDIA_TYPES) == MEDIA_TYPES
    assert default_step("x-gis/x-shapefile").kind == "EsriShapefile"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a/b.csv", "text/csv"),
        ("B.JSON", "application/json"),
        ("c.ndjson", "application/x-ndjson"),
        ("d.geojson", "application/geo+json"),
        ("e.ndgeojson", "application/x-ndgeojson"),
        ("f.v1.parquet", "application/vnd.apache.parquet"),
        ("g.shp", "application/vnd.shp"),
        ("g.shx", "application/vnd.shp"),
        ("csv", None),
        ("h.txt", None),
    ],
)
def test_files_tell_their_media_type_by_their_ending(name: str, media_type: str | None) -> None:
    assert media_type_of_file(name) == media_type


def test_the_sources_own_step_reads_its_own_media_type() -> None:
    step = ReadStepCsv(separator=";", header=True)
    assert step_for("text/csv", step) is step
    assert step_for('Text/CSV; charset="UTF-8"; header=present', step) is step
    assert step_for(None, step) is step


@pytest.mark.parametrize(
    ("media_type", "source", "expected"),
    [
        ("application/json", ReadStepNdJson(ddl_schema=COLUMNS), ReadStepJson(ddl_schema=COLUMNS)),
        ("application/json", ReadStepCsv(separator=";", header=True), ReadStepJson()),
        ("text/csv", ReadStepNdJson(), ReadStepCsv(header=True)),
        ("text/csv", ReadStepNdJson(ddl_schema=COLUMNS), ReadStepCsv(ddl_schema=COLUMNS)),
        ("application/vnd.apache.parquet", ReadStepJson(sub_path="a.b"), ReadStepParquet()),
    ],
)
def test_another_media_type_is_read_by_its_default_step_with_the_sources_columns(
    media_type: str, source: ReadStep, expected: ReadStep
) -> None:
    assert step_for(media_type, source) == expected


def test_other_media_types_are_refused() -> None:
    with pytest.raises(UnsupportedMediaTypeError) as caught:
        step_for("text/html", ReadStepCsv())
    assert str(caught.value) == f"media type 'text/html' is not supported: use one of {', '.join(MEDIA_TYPES)}"
    with pytest.raises(UnsupportedMediaTypeError) as caught:
        step_for("text/csv; charset=utf-16", ReadStepCsv())
    assert str(caught.value) == "charset 'utf-16' of 'text/csv' is not supported: send UTF-8"
