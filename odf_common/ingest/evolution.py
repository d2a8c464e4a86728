"""The dataset's schema and the columns of rows: what may come new, and what must stay."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
from pyarrow import types

from odf_common.data.arrow_types import from_arrow
from odf_common.data.ddl import format_ddl
from odf_common.data.errors import UnsupportedTypeError
from odf_common.data.logical_hash import LogicalHasher
from odf_common.data.slice_writer import stored_schema
from odf_common.data.system_columns import OFFSET_TYPE, OPERATION_TYPE, SYSTEM_TIME_TYPE
from odf_common.errors import OdfError
from odf_common.ingest.errors import BadInputSchemaError, IncompatibleSchemaError
from odf_common.ingest.final_rows import normalized, with_event_time
from odf_common.ingest.messages import MESSAGES
from odf_common.ingest.source import SourcePlan, data_columns, system_columns
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.fragments import DatasetVocabulary

_SHOWN_COLUMNS = 100


def check_evolution(
    source: AddPushSource,
    vocabulary: DatasetVocabulary,
    data_schema: pa.Schema | None,
    *,
    others: Collection[AddPushSource] = (),
) -> None:
    """Raise IncompatibleSchemaError if a source, added or set anew, does not bring the columns that its dataset has.

    New columns are fine; removed, renamed, retyped or narrowed ones are not. Columns that active sources among `others`
    bring may be missing. What a query or inference will bring is not known before there is data.
    """
    plan = SourcePlan.of(source, vocabulary, data_schema, others=others)
    if data_schema is None or not plan.declares_rows:
        return
    rows = normalized(plan.reader.read(MESSAGES.empty_table()).rows, vocabulary)
    data_schema_with(plan, with_event_time(plan, rows).schema)


def data_schema_with(plan: SourcePlan, columns: pa.Schema, *, accept_new_columns: bool = True) -> pa.Schema:
    """The dataset's schema, with what columns are new to it; the very same if none is.

    Operations among the columns do not count. IncompatibleSchemaError when a column is missing, or has another type;
    without `accept_new_columns` also when there is a new one that no read schema declares.
    """
    columns = pa.schema([column for column in columns if column.name != plan.vocabulary.operation_type_column])
    if plan.data_schema is None:
        return _first_schema(plan, columns)
    known = plan.data_schema
    fields = [
        column if column.name in system_columns(plan.vocabulary) else _kept(plan, column, columns) for column in known
    ]
    new = [column.with_nullable(True) for column in columns if column.name not in known.names]
    is_same = all(field == column for field, column in zip(fields, known, strict=True))
    if not new and is_same:
        return known
    if plan.infers_columns and not accept_new_columns:
        names = [column.name for column in new] or [f.name for f, k in zip(fields, known, strict=True) if f != k]
        raise _incompatible(plan, columns, f"{_columns(names)} new, and this source may bring no new columns")
    stored = _stored(pa.schema([*fields, *new]), plan.vocabulary)
    return pa.schema([*fields, *(stored.field(column.name) for column in new)])


def shown_schema(schema: pa.Schema) -> str:
    """Columns on one line, in DDL where that has a word for the type."""
    shown = [_shown_column(column) for column in list(schema)[:_SHOWN_COLUMNS]]
    return ", ".join([*shown, *(["…"] if len(schema) > _SHOWN_COLUMNS else [])])


def _first_schema(plan: SourcePlan, columns: pa.Schema) -> pa.Schema:
    vocabulary = plan.vocabulary
    event_time = columns.field(vocabulary.event_time_column)
    others = [column for column in columns if column.name != vocabulary.event_time_column]
    system = zip(system_columns(vocabulary), (OFFSET_TYPE, OPERATION_TYPE, SYSTEM_TIME_TYPE), strict=True)
    if plan.has_preprocess:  # what a query knows to be never null may be null after it was changed
        others = [column.with_nullable(True) for column in others]
    wanted = [*(pa.field(name, data_type) for name, data_type in system), event_time, *others]
    return _stored(pa.schema(wanted), vocabulary)


def _stored(schema: pa.Schema, vocabulary: DatasetVocabulary) -> pa.Schema:
    stored = stored_schema(schema, vocabulary)
    try:
        LogicalHasher(stored)
    except UnsupportedTypeError as error:
        raise BadInputSchemaError(f"{error}: give the column another type, or leave it out") from error
    return stored


def _kept(plan: SourcePlan, known: pa.Field, columns: pa.Schema) -> pa.Field:
    """The known column, unless the rows bring new members of its structs."""
    index = columns.get_field_index(known.name)
    if index < 0:
        if known.nullable and (plan.infers_columns or plan.is_of_others(known.name)):
            return known
        raise _incompatible(plan, columns, f"column {known.name!r} is missing")
    found = columns.field(index)
    if _logical(known.type) == _logical(found.type):
        return known
    if types.is_nested(known.type) and _is_wider(known.type, found.type):
        return found.with_nullable(known.nullable)
    change = f"column {known.name!r} is {_shown_type(found.type)}, in the dataset it is {_shown_type(known.type)}"
    raise _incompatible(plan, columns, change)


def _is_wider(known: pa.DataType, found: pa.DataType) -> bool:
    if types.is_struct(known) and types.is_struct(found):
        members = {member.name: member.type for member in found}
        return all(member.name in members and _is_wider(member.type, members[member.name]) for member in known)
    if types.is_list(known) and types.is_list(found):
        return _is_wider(known.value_type, found.value_type)
    return bool(_logical(known) == _logical(found))


def _logical(data_type: pa.DataType) -> object:
    return from_arrow(pa.schema([pa.field("x", data_type)]))


def _incompatible(plan: SourcePlan, columns: pa.Schema, reason: str) -> IncompatibleSchemaError:
    assert plan.data_schema is not None
    dataset = shown_schema(data_columns(plan.data_schema, plan.vocabulary))
    return IncompatibleSchemaError(
        f"{reason}; columns may be added, never removed, renamed or retyped. "
        f"The dataset has: {dataset}. The source {plan.source.source_name!r} brings: {shown_schema(columns)}"
    )


def _columns(names: list[str]) -> str:
    quoted = ", ".join(repr(name) for name in names)
    return f"column {quoted} is" if len(names) == 1 else f"columns {quoted} are"


def _shown_column(column: pa.Field) -> str:
    return f"{column.name} {_shown_type(column.type)}{'' if column.nullable else ' NOT NULL'}"


def _shown_type(data_type: pa.DataType) -> str:
    try:
        return format_ddl(pa.schema([pa.field("x", data_type)]))[0].removeprefix("x ")
    except OdfError:
        return str(data_type)
