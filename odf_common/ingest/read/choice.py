"""The reader of a read step, and what of a read step is not supported here."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyarrow import types

from odf_common.data.arrow_types import to_arrow
from odf_common.data.ddl import parse_ddl
from odf_common.data.errors import UnsupportedTypeError
from odf_common.errors import InvalidTextError
from odf_common.ingest.errors import UnsupportedSourceError
from odf_common.ingest.read.csv import CsvOptions, CsvReader
from odf_common.ingest.read.csv_rows import CsvFormat
from odf_common.ingest.read.geo_json import GeoJsonReader
from odf_common.ingest.read.json import JsonReader
from odf_common.ingest.read.nd_json import NdJsonReader
from odf_common.ingest.read.parquet import ParquetFormat
from odf_common.ingest.read.records import Reader
from odf_common.ingest.read.row_schema import RowSchema
from odf_common.ingest.read.shapefile_features import ShapefileFormat
from odf_common.ingest.read.whole import WholeReader
from odf_common.metadata.fragments import DatasetVocabulary
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

_RFC3339 = "rfc3339"
_UTF8 = frozenset({"utf8", "utf-8"})


def reader_of(
    step: ReadStep,
    known: pa.Schema | None,
    *,
    vocabulary: DatasetVocabulary | None = None,
    has_preprocess: bool = False,
    allows_operation: bool = False,
) -> Reader:
    """The reader of a step. `known` are the columns of earlier rows, which count where the step declares none.

    `allows_operation`: records may bring the operation column under its own name, for merge strategies that take it.
    Raises UnsupportedSourceError, which says what to change.
    """
    _check_formats(step)
    names = vocabulary or DatasetVocabulary()
    reserved = [names.offset_column, names.system_time_column]
    if not allows_operation:
        reserved.append(names.operation_type_column)
    event_time = None if has_preprocess else names.event_time_column
    schema = _row_schema(step, known, () if has_preprocess else reserved, event_time)
    try:
        return _reader(step, schema)
    except UnsupportedTypeError as error:
        raise UnsupportedSourceError(f"{error}: declare it as STRING, or leave the column out") from error


def _reader(step: ReadStep, schema: RowSchema) -> Reader:
    match step:
        case ReadStepCsv():
            return CsvReader(schema, csv_options(step))
        case ReadStepJson():
            if step.sub_path and not all(step.sub_path.split(".")):
                raise UnsupportedSourceError(f"subPath {step.sub_path!r} is not supported: write keys like a.b.c")
            return JsonReader(schema, step.sub_path)
        case ReadStepNdJson():
            return NdJsonReader(schema)
        case ReadStepGeoJson() | ReadStepNdGeoJson():
            return GeoJsonReader(schema, has_lines=isinstance(step, ReadStepNdGeoJson))
        case ReadStepParquet():
            return WholeReader(schema, ParquetFormat())
        case ReadStepEsriShapefile():
            assert len(schema.wire)
            return WholeReader(schema, ShapefileFormat(step.sub_path))


def csv_options(step: ReadStepCsv) -> CsvOptions:
    """The options of a Csv read step."""
    if step.null_value:
        raise UnsupportedSourceError(f"nullValue {step.null_value!r} is not supported: only empty values are null")
    for option, mark in (("separator", step.separator), ("quote", step.quote), ("escape", step.escape)):
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n"):
            raise UnsupportedSourceError(f"{option} {mark!r} is not supported: it must be one ASCII character")
    quote = step.quote or '"'
    marks = CsvFormat(step.separator or ",", quote, None if step.escape == quote else step.escape)
    if len({marks.separator, marks.quote, marks.escape}) < 3:
        raise UnsupportedSourceError("separator, quote and escape of a Csv read step must be different characters")
    return CsvOptions(csv_format=marks, has_header=bool(step.header), infers=bool(step.infer_schema))


def declared_columns(step: ReadStep) -> pa.Schema | None:
    """The columns of the read step's schema; None if it has none."""
    if step.ddl_schema is not None:
        try:
            return parse_ddl(step.ddl_schema)
        except InvalidTextError as error:
            raise UnsupportedSourceError(f"the schema of the read step: {error}") from error
    return None if step.schema_ is None else to_arrow(step.schema_)


def _row_schema(step: ReadStep, known: pa.Schema | None, reserved: Iterable[str], event_time: str | None) -> RowSchema:
    declared = declared_columns(step)
    if declared is not None:
        unit = "us" if event_time is None else "ms"
        return RowSchema.declared(pa.schema([_in_utc(column, unit) for column in declared]), event_time=event_time)
    return RowSchema.known(known or pa.schema([]), event_time=event_time, reserved=reserved)


def _in_utc(column: pa.Field, unit: str) -> pa.Field:
    """Timestamps of rows are in milliseconds; a query gets what it can compute with."""
    if not types.is_timestamp(column.type):
        return column.with_type(_without_seconds(column.type))
    finer = column.type.unit if column.type.unit in ("ms", "us") and unit == "us" else unit
    return column.with_type(pa.timestamp(finer, "UTC"))


def _without_seconds(data_type: pa.DataType) -> pa.DataType:
    """Parquet counts milliseconds at least."""
    if types.is_timestamp(data_type) and data_type.unit == "s":
        return pa.timestamp("ms", data_type.tz)
    if types.is_time32(data_type):
        return pa.time32("ms")
    if types.is_struct(data_type):
        return pa.struct([member.with_type(_without_seconds(member.type)) for member in data_type])
    if types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_without_seconds(data_type.value_type)))
    return data_type


def _check_formats(step: ReadStep) -> None:
    if not isinstance(step, ReadStepNdJson | ReadStepJson | ReadStepCsv):
        return
    for option, value in (("dateFormat", step.date_format), ("timestampFormat", step.timestamp_format)):
        if value is not None and value.lower() != _RFC3339:
            raise UnsupportedSourceError(f"{option} {value!r} is not supported: leave it out, or use {_RFC3339}")
    if step.encoding is not None and step.encoding.lower() not in _UTF8:
        raise UnsupportedSourceError(f"encoding {step.encoding!r} is not supported: send utf8 and leave it out")
