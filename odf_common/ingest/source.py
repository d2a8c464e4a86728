"""A push source, ready to run: its read step and merge strategy, held against the dataset's columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyarrow import types

from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import LogicalHasher
from odf_common.data.slice_writer import stored_schema
from odf_common.ingest.errors import BadInputSchemaError, UnsupportedSourceError
from odf_common.ingest.merge.check import (
    check_merge,
    check_merge_columns,
    check_operation_type,
    takes_operations,
)
from odf_common.ingest.read.choice import declared_columns, reader_of
from odf_common.ingest.read.json_types import stored_type
from odf_common.ingest.read.records import Reader
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import ReadStep


@dataclass(frozen=True)
class SourcePlan:
    """Everything about a source that does not change from batch to batch, except by new columns: see `evolved`."""

    source: AddPushSource
    vocabulary: DatasetVocabulary
    data_schema: pa.Schema | None
    """The dataset's columns as its chain has them, system columns included; None before the first data."""
    others: tuple[AddPushSource, ...] = ()
    """The other active sources of the dataset: what they bring may be missing here."""

    @classmethod
    def of(
        cls,
        source: AddPushSource,
        vocabulary: DatasetVocabulary,
        data_schema: pa.Schema | None,
        *,
        others: Collection[AddPushSource] = (),
    ) -> SourcePlan:
        """UnsupportedSourceError or BadInputSchemaError for a source that cannot be run."""
        check_source(source, vocabulary)
        apart = tuple(other for other in others if other.source_name != source.source_name)
        return cls(source, vocabulary, data_schema, apart)

    @property
    def has_preprocess(self) -> bool:
        """Whether rows go through a query after they were read."""
        return self.source.preprocess is not None

    @cached_property
    def declares_rows(self) -> bool:
        """Whether the columns of the rows are known without any record."""
        return not self.has_preprocess and declared_columns(self.source.read) is not None

    @cached_property
    def infers_columns(self) -> bool:
        """Whether what the records bring decides on the columns, so that they differ from batch to batch."""
        return declared_columns(self.source.read) is None

    @property
    def takes_operations(self) -> bool:
        """Whether rows may bring their operation."""
        return takes_operations(self.source.merge)

    @cached_property
    def reader(self) -> Reader:
        """The read step."""
        return self.reader_of(self.source.read)

    def reader_of(self, step: ReadStep) -> Reader:
        """The reader of a step that takes the place of the source's own."""
        return reader_of(
            step,
            self._known_columns(),
            vocabulary=self.vocabulary,
            has_preprocess=self.has_preprocess,
            allows_operation=self.takes_operations,
        )

    def is_of_others(self, column: str) -> bool:
        """Whether another source of the dataset brings, or may bring, a column."""
        return any(_may_bring(other, column) for other in self.others)

    @cached_property
    def stored_schema(self) -> pa.Schema | None:
        """The columns as slices hold them."""
        return None if self.data_schema is None else stored_schema(self.data_schema, self.vocabulary)

    def evolved(self, data_schema: pa.Schema) -> SourcePlan:
        """The plan for the next batch, after one that brought a new schema (`Batch.data_schema`)."""
        return replace(self, data_schema=data_schema)

    def _known_columns(self) -> pa.Schema | None:
        """What earlier rows tell about the columns of a source that declares none."""
        if self.data_schema is None or self.has_preprocess:
            return None
        columns = data_columns(self.data_schema, self.vocabulary)
        if not self.takes_operations:
            return columns
        return columns.append(pa.field(self.vocabulary.operation_type_column, pa.int64()))


def system_columns(vocabulary: DatasetVocabulary) -> tuple[str, str, str]:
    """The columns that no source may bring."""
    return vocabulary.offset_column, vocabulary.operation_type_column, vocabulary.system_time_column


def data_columns(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    """The columns that sources bring, and the event time."""
    return pa.schema([column for column in schema if column.name not in system_columns(vocabulary)])


def check_source(source: AddPushSource, vocabulary: DatasetVocabulary) -> None:
    """Raise UnsupportedSourceError or BadInputSchemaError for a source that cannot be run here."""
    check_merge(source.merge)
    operations = takes_operations(source.merge)
    reader_of(
        source.read,
        None,
        vocabulary=vocabulary,
        has_preprocess=source.preprocess is not None,
        allows_operation=operations,
    )
    columns = declared_columns(source.read)
    if columns is not None and source.preprocess is None:
        check_columns(columns, vocabulary, allows_operation=operations)
        _check_storage(columns)
        check_merge_columns(source.merge, columns, vocabulary)


def check_columns(columns: pa.Schema, vocabulary: DatasetVocabulary, *, allows_operation: bool = False) -> None:
    """Raise BadInputSchemaError unless rows with these columns can get their system columns."""
    repeated = [name for name in columns.names if columns.names.count(name) > 1]
    if repeated:
        raise BadInputSchemaError(f"there are two columns {repeated[0]!r}")
    operation = vocabulary.operation_type_column
    if allows_operation and operation in columns.names:
        check_operation_type(operation, columns.field(operation).type)
    reserved = [
        name
        for name in columns.names
        if name in system_columns(vocabulary) and not (allows_operation and name == operation)
    ]
    if reserved:
        raise BadInputSchemaError(
            f"column {reserved[0]!r} has the name of a system column: give it another name, or set a vocabulary"
        )
    index = columns.get_field_index(vocabulary.event_time_column)
    if index >= 0 and not _is_time(columns.field(index).type):
        raise BadInputSchemaError(
            f"event time column {vocabulary.event_time_column!r} must be a DATE or TIMESTAMP, "
            f"it is {columns.field(index).type}"
        )


def _check_storage(columns: pa.Schema) -> None:
    try:
        LogicalHasher(pa.schema(column.with_type(stored_type(column.type)) for column in columns))
    except UnsupportedTypeError as error:
        raise UnsupportedSourceError(f"{error}: give the column another type, or leave it out") from error


def _is_time(data_type: pa.DataType) -> bool:
    return bool(types.is_date(data_type) or types.is_timestamp(data_type))


def _may_bring(source: AddPushSource, column: str) -> bool:
    declared = None if source.preprocess is not None else declared_columns(source.read)
    return declared is None or column in declared.names
