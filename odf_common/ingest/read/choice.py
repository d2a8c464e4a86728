"""The reader of a read step, and what of a read step is not supported here."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from odf_common.data.arrow_types import to_arrow
from odf_common.data.ddl import parse_ddl
from odf_common.data.errors import UnsupportedTypeError
from odf_common.errors import InvalidTextError
from odf_common.ingest.errors import UnsupportedSourceError
from odf_common.ingest.read.csv import CsvOptions, CsvReader
from odf_common.ingest.read.csv_rows import CsvFormat
from odf_common.ingest.read.json import JsonReader
from odf_common.ingest.read.nd_json import NdJsonReader
from odf_common.ingest.read.records import Reader
from odf_common.ingest.read.row_schema import RowSchema
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import ReadStep, ReadStepCsv, ReadStepJson, ReadStepNdJson

_RFC3339 = "rfc3339"
_UTF8 = frozenset({"utf8", "utf-8"})

JSON_STEPS = (ReadStepNdJson, ReadStepJson)


def reader_of(
    step: ReadStep,
    known: pa.Schema | None,
    *,
    vocabulary: DatasetVocabulary | None = None,
    has_preprocess: bool = False,
) -> Reader:
    """The reader of a step. `known` are the columns of earlier rows, which count where the step declares none.

    Raises UnsupportedSourceError, which says what to change.
    """
    if not isinstance(step, ReadStepNdJson | ReadStepJson | ReadStepCsv):
        raise UnsupportedSourceError(f"read step {step.kind} takes no messages: use NdJson, Json or Csv")
    _check_formats(step)
    schema = _row_schema(step, known, vocabulary or DatasetVocabulary(), has_preprocess=has_preprocess)
    try:
        return _reader(step, schema)
    except UnsupportedTypeError as error:
        raise UnsupportedSourceError(f"{error}: declare it as STRING, or leave the column out") from error


def _reader(step: ReadStepNdJson | ReadStepJson | ReadStepCsv, schema: RowSchema) -> Reader:
    if isinstance(step, ReadStepCsv):
        return CsvReader(schema, _csv_options(step))
    return JsonReader(schema, step.sub_path) if isinstance(step, ReadStepJson) else NdJsonReader(schema)


def _csv_options(step: ReadStepCsv) -> CsvOptions:
    if step.null_value:
        raise UnsupportedSourceError(f"nullValue {step.null_value!r} is not supported: only empty values are null")
    for option, mark in (("separator", step.separator), ("quote", step.quote), ("escape", step.escape)):
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n"):
            raise UnsupportedSourceError(f"{option} {mark!r} is not supported: it must be one ASCII character")
    marks = CsvFormat(step.separator or ",", step.quote or '"', None if step.escape == step.quote else step.escape)
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


def _row_schema(
    step: ReadStep, known: pa.Schema | None, vocabulary: DatasetVocabulary, *, has_preprocess: bool
) -> RowSchema:
    declared = declared_columns(step)
    event_time = None if has_preprocess else vocabulary.event_time_column
    if declared is not None:
        unit = "us" if has_preprocess else "ms"
        return RowSchema.declared(pa.schema([_in_utc(column, unit) for column in declared]), event_time=event_time)
    reserved = (
        ()
        if has_preprocess
        else (vocabulary.offset_column, vocabulary.operation_type_column, vocabulary.system_time_column)
    )
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


def _check_formats(step: ReadStepNdJson | ReadStepJson | ReadStepCsv) -> None:
    for option, value in (("dateFormat", step.date_format), ("timestampFormat", step.timestamp_format)):
        if value is not None and value.lower() != _RFC3339:
            raise UnsupportedSourceError(f"{option} {value!r} is not supported: leave it out, or use {_RFC3339}")
    if step.encoding is not None and step.encoding.lower() not in _UTF8:
        raise UnsupportedSourceError(f"encoding {step.encoding!r} is not supported: send utf8 and leave it out")
