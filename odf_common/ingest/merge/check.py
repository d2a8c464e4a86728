"""What of a merge strategy can be refused before any data arrives."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from odf_common.ingest.errors import BadInputSchemaError, UnsupportedSourceError
from odf_common.ingest.merge.keys import check_key_type
from odf_common.metadata.fragments import DatasetVocabulary
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)


def takes_operations(strategy: MergeStrategy) -> bool:
    """Whether rows may bring their operation."""
    return isinstance(strategy, MergeStrategyChangelogStream | MergeStrategyUpsertStream)


def check_merge(strategy: MergeStrategy) -> None:
    """Raise UnsupportedSourceError for a strategy that says too little."""
    if isinstance(strategy, MergeStrategyAppend):
        return
    if not strategy.primary_key:
        raise UnsupportedSourceError(f"merge strategy {strategy.kind} needs a primaryKey of at least one column")
    if isinstance(strategy, MergeStrategySnapshot) and strategy.compare_columns == ():
        raise UnsupportedSourceError(
            "compareColumns of merge strategy Snapshot is empty: name a column, or leave it out to compare all"
        )


def check_merge_columns(strategy: MergeStrategy, columns: pa.Schema, vocabulary: DatasetVocabulary) -> None:
    """Raise BadInputSchemaError unless rows with these columns, and no others, can be merged."""
    if isinstance(strategy, MergeStrategyAppend):
        return
    for name in strategy.primary_key:
        if name in columns.names:
            check_key_type(name, columns.field(name).type)
        elif name != vocabulary.event_time_column:
            raise _undefined("the primary key", name)
        elif not isinstance(strategy, MergeStrategyLedger):
            raise BadInputSchemaError(
                f"the primary key has the event time column {name!r}, which the read step does not define: "
                "it would be null in every record"
            )
    if isinstance(strategy, MergeStrategySnapshot):
        _check_compared(strategy, columns, vocabulary)
    if isinstance(strategy, MergeStrategyChangelogStream) and vocabulary.operation_type_column not in columns.names:
        raise BadInputSchemaError(
            f"merge strategy ChangelogStream needs the column {vocabulary.operation_type_column!r} with the operation "
            "of each record (0 append, 1 retract, 2 correct-from, 3 correct-to): add it to the read step's schema"
        )


def check_operation_type(name: str, data_type: pa.DataType) -> None:
    """Raise BadInputSchemaError for a column that cannot hold operations."""
    if not types.is_integer(data_type):
        raise BadInputSchemaError(f"operation column {name!r} must be an integer, it is {data_type}")


def _check_compared(strategy: MergeStrategySnapshot, columns: pa.Schema, vocabulary: DatasetVocabulary) -> None:
    for name in strategy.compare_columns or ():
        if name not in columns.names and name != vocabulary.event_time_column:
            raise _undefined("compareColumns", name)


def _undefined(where: str, name: str) -> BadInputSchemaError:
    return BadInputSchemaError(f"{where} has the column {name!r}, which the read step does not define")
