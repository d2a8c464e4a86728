"""SQL transforms, and the inputs of derivative datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from odf_common.identity.references import DatasetRefAny, parse_ref_any
from odf_common.metadata.base import Model, spelled


def _ref(value: Any) -> DatasetRefAny:
    if isinstance(value, DatasetRefAny):
        return value
    if isinstance(value, str):
        return parse_ref_any(value)
    raise ValueError(f"expected a text, got {type(value).__name__}")


if TYPE_CHECKING:
    RefText = DatasetRefAny
else:
    RefText = Annotated[DatasetRefAny, PlainValidator(_ref), PlainSerializer(str), WithJsonSchema({"type": "string"})]


class SqlQueryStep(Model):
    """One query; others may refer to it by its alias, the last one has none."""

    alias: str | None = None
    query: str


class TemporalTable(Model):
    """A changelog stream to be read as a table with this key."""

    name: str
    primary_key: tuple[str, ...]


class TransformSql(Model):
    """Queries in the dialect of `engine`. A chain holds `queries` only; `query` is short for a single one."""

    kind: Literal["Sql"] = "Sql"
    engine: str
    version: str | None = None
    query: str | None = None
    queries: tuple[SqlQueryStep, ...] | None = None
    temporal_tables: tuple[TemporalTable, ...] | None = None


Transform = Annotated[TransformSql, spelled(TransformSql)]


class TransformInput(Model):
    """A dataset that a transform reads: an id in a chain, an id or alias in a snapshot."""

    dataset_ref: RefText
    alias: str | None = None
