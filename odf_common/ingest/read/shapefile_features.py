"""EsriShapefile: a row for each feature, its attributes and its geometry as GeoJSON text."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import shapefile

from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read.geo_json_form import GEOMETRY
from odf_common.ingest.read.json_objects import read_objects
from odf_common.ingest.read.records import InvalidPayloadError
from odf_common.ingest.read.row_schema import RowSchema
from odf_common.ingest.read.shapefile_zip import Parts, invalid, shapefile_parts

_PART_SIZE = 8 << 20  # bytes of JSON
_NULL_SHAPE = 0


class ShapefileFormat:
    """Reads shapefiles in zip archives."""

    def __init__(self, sub_path: str | None = None) -> None:
        self._sub_path = sub_path

    def tables(self, file: BinaryIO, schema: RowSchema, *, max_size: int | None = None) -> Iterator[pa.Table]:
        """See `FileFormat`."""
        yield schema.table.empty_table()
        first, left = 0, max_size
        with shapefile_parts(file, self._sub_path, max_size=max_size) as parts:
            for lines in _grouped(_features(parts)):
                if left is not None:
                    left -= sum(map(len, lines))
                    if left < 0:
                        raise invalid(f"the shapefile has more than {max_size} bytes of features: send it as a file")
                objects = read_objects(pa.array(lines, pa.binary()), schema)
                if objects.problems:
                    place, problem = min(objects.problems.items())
                    raise InvalidPayloadError(Problem(problem.code, f"feature {first + place + 1}: {problem.reason}"))
                yield objects.rows
                schema = schema.following(objects.rows.schema)
                first += len(lines)


def _grouped(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    size = 0
    for line in lines:
        group.append(line)
        size += len(line)
        if size >= _PART_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _features(parts: Parts) -> Iterator[bytes]:
    """Each feature as a JSON object."""
    number = 0
    _check_length(parts)
    try:
        with shapefile.Reader(shp=parts.shapes, dbf=parts.attributes, encoding=parts.encoding) as reader:
            names = [field.name for field in reader.fields[1:]]
            _check_names(names)
            shapes, records = reader.iterShapes(), reader.dbf_reader.iterRecords(deleted_as_None=True)
            for shape, record in itertools.zip_longest(shapes, records, fillvalue=_MISSING):
                number += 1
                if record is _MISSING or shape is _MISSING:
                    have, lack = (".shp", ".dbf") if record is _MISSING else (".dbf", ".shp")
                    raise invalid(f"feature {number}: the {have} file has it, the {lack} file does not: one is cut off")
                if record is not None:  # deleted ones stay in the file
                    yield _line(shape, dict(zip(names, record, strict=True)))
    except InvalidPayloadError:
        raise
    except Exception as error:  # whatever the library makes of bytes that are no shapefile
        if "Could not decode" in str(error):
            hint = "put a .cpg file that names its encoding into the zip archive"
            raise invalid(f"feature {number + 1}: the .dbf file is not {parts.encoding}: {hint}") from error
        raise invalid(f"feature {number + 1}: {parts.name!r} is damaged: {error}") from error


_MISSING: Any = object()


def _check_length(parts: Parts) -> None:
    """The library would read what there is of a file that was cut off."""
    parts.shapes.seek(24)
    promised = 2 * int.from_bytes(parts.shapes.read(4), "big")
    size = parts.shapes.seek(0, io.SEEK_END)
    parts.shapes.seek(0)
    if size < promised:
        raise invalid(f"{parts.name!r} is cut off: it says that it has {promised} bytes, but has {size}")


def _check_names(names: list[str]) -> None:
    repeated = [name for name in (*names, GEOMETRY) if (*names, GEOMETRY).count(name) > 1]
    if repeated:
        raise InvalidPayloadError(
            Problem(Code.DUPLICATE_KEY, f"two columns of the shapefile want to be called {repeated[0]!r}")
        )


def _line(shape: Any, attributes: dict[str, Any]) -> bytes:
    geometry = None
    if shape.shapeType != _NULL_SHAPE:
        geometry = orjson.dumps(shape.__geo_interface__, option=orjson.OPT_SORT_KEYS).decode()
    # The format has no nulls among texts, only blanks.
    known = {name: None if value == "" else value for name, value in attributes.items()}
    return orjson.dumps(known | {GEOMETRY: geometry})
