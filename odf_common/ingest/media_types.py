"""Media types of payloads: which read step takes each, and which files it has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from odf_common.errors import OdfError
from odf_common.metadata.sources import (
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)

_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii"})


class UnsupportedMediaTypeError(OdfError):
    """No read step takes payloads of this media type."""


@dataclass(frozen=True, slots=True)
class _Format:
    media_type: str
    step: type[ReadStep]
    extensions: tuple[str, ...]
    other_names: tuple[str, ...] = ()


_FORMATS = (
    _Format("text/csv", ReadStepCsv, ("csv",)),
    _Format("application/json", ReadStepJson, ("json",)),
    _Format("application/x-ndjson", ReadStepNdJson, ("ndjson",)),
    _Format("application/geo+json", ReadStepGeoJson, ("geojson",)),
    _Format("application/x-ndgeojson", ReadStepNdGeoJson, ("ndgeojson",)),
    _Format("application/vnd.apache.parquet", ReadStepParquet, ("parquet",)),
    _Format("application/vnd.shp", ReadStepEsriShapefile, ("shp", "shx"), ("x-gis/x-shapefile",)),
)
_BY_NAME = {name: entry for entry in _FORMATS for name in (entry.media_type, *entry.other_names)}
_BY_EXTENSION = {extension: entry for entry in _FORMATS for extension in entry.extensions}
_BY_KIND = {entry.step.model_fields["kind"].default: entry for entry in _FORMATS}

MEDIA_TYPES = tuple(entry.media_type for entry in _FORMATS)


def media_type_of(step: ReadStep) -> str:
    """The media type of what a read step reads."""
    return _BY_KIND[step.kind].media_type


def media_type_of_file(name: str) -> str | None:
    """The media type that the ending of a file's name tells; None where it tells none."""
    entry = _BY_EXTENSION.get(PurePath(name).suffix.removeprefix(".").lower())
    return None if entry is None else entry.media_type


def step_for(media_type: str | None, source_step: ReadStep) -> ReadStep:
    """The read step for a payload that comes to a source with this read step.

    The source's own where the media type is its own, or where there is none. Otherwise a default step of the actual
    type, which has nothing of the source's but its columns. Raises UnsupportedMediaTypeError.
    """
    if media_type is None:
        return source_step
    wanted = _format_of(media_type).step
    if isinstance(source_step, wanted):
        return source_step
    return _with_columns(wanted, source_step)


def default_step(media_type: str) -> ReadStep:
    """The read step for a media type where no source tells more. Raises UnsupportedMediaTypeError."""
    return _with_columns(_format_of(media_type).step, None)


def _with_columns(wanted: type[ReadStep], source_step: ReadStep | None) -> ReadStep:
    ddl = None if source_step is None else source_step.ddl_schema
    native = None if source_step is None else source_step.schema_
    # Columns that are known are taken by their place, others are named by the first row.
    header = {"header": True} if wanted is ReadStepCsv and ddl is None and native is None else {}
    return wanted(ddl_schema=ddl, schema_=native, **header)


def _format_of(media_type: str) -> _Format:
    name, *parameters = (part.strip() for part in media_type.split(";"))
    found = _BY_NAME.get(name.lower())
    if found is None:
        raise UnsupportedMediaTypeError(f"media type {name!r} is not supported: use one of {', '.join(MEDIA_TYPES)}")
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if key.strip().lower() == "charset" and charset.lower() not in _CHARSETS:
            raise UnsupportedMediaTypeError(f"charset {charset!r} of {name!r} is not supported: send UTF-8")
    return found
