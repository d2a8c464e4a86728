"""The thirteen events of a metadata chain."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic.json_schema import SkipJsonSchema

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.metadata.base import U64, Base64Bytes, ExtraAttributes, Model, TextEnum, renamed_schema, spelled
from odf_common.metadata.data_schema import DataSchema
from odf_common.metadata.fragments import Attachments, Checkpoint, DataSlice, ExecuteTransformInput, SourceState
from odf_common.metadata.sources import FetchStep, MergeStrategy, PrepStep, ReadStep
from odf_common.metadata.transforms import Transform, TransformInput
from odf_common.timestamp import Timestamp


class DatasetKind(TextEnum):
    """Root datasets take data from outside, derivative ones compute it from other datasets."""

    ROOT = "Root"
    DERIVATIVE = "Derivative"


class Seed(Model):
    """Begins a chain and names the dataset."""

    kind: Literal["Seed"] = "Seed"
    dataset_id: DatasetId
    dataset_kind: DatasetKind


class AddData(Model):
    """New data, a new watermark, a new source state or a new checkpoint of a root dataset."""

    kind: Literal["AddData"] = "AddData"
    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None
    new_source_state: SourceState | None = None
    extra: ExtraAttributes | None = None


class ExecuteTransform(Model):
    """One transaction of a derivative dataset."""

    kind: Literal["ExecuteTransform"] = "ExecuteTransform"
    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None


class SetPollingSource(Model):
    """Defines the source that data is pulled from."""

    kind: Literal["SetPollingSource"] = "SetPollingSource"
    fetch: FetchStep
    prepare: tuple[PrepStep, ...] | None = None
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


class AddPushSource(Model):
    """Defines a source that data is pushed to."""

    kind: Literal["AddPushSource"] = "AddPushSource"
    source_name: str
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


class DisablePushSource(Model):
    """Ends a push source."""

    kind: Literal["DisablePushSource"] = "DisablePushSource"
    source_name: str


class DisablePollingSource(Model):
    """Ends the polling source."""

    kind: Literal["DisablePollingSource"] = "DisablePollingSource"


class SetTransform(Model):
    """Defines how a derivative dataset is computed."""

    kind: Literal["SetTransform"] = "SetTransform"
    inputs: tuple[TransformInput, ...]
    transform: Transform


class SetVocab(Model):
    """Names the system columns; replaces the previous vocabulary as a whole."""

    kind: Literal["SetVocab"] = "SetVocab"
    offset_column: str | None = None
    operation_type_column: str | None = None
    system_time_column: str | None = None
    event_time_column: str | None = None


def _accept_base64_as_schema(json_schema: dict[str, Any]) -> None:
    properties = json_schema["properties"]
    properties["schema"] = {"anyOf": [properties["rawArrowSchema"], properties["schema"]], "default": None}


class SetDataSchema(Model):
    """Defines the columns: as a bare Arrow Schema buffer (ODF 0.36), or natively (since 0.37).

    In text the buffer is called `schema` as in 0.36; `rawArrowSchema`, its name since 0.37, is read as well.
    """

    model_config = {"json_schema_extra": _accept_base64_as_schema}

    kind: Literal["SetDataSchema"] = "SetDataSchema"
    raw_arrow_schema: Base64Bytes | None = None
    schema_: DataSchema | None = Field(default=None, alias="schema")

    @model_validator(mode="before")
    @classmethod
    def _read_text_as_raw(cls, value: Any) -> Any:
        return renamed_schema(value, kind=str, name="rawArrowSchema")

    @model_validator(mode="after")
    def _has_a_schema(self) -> Self:
        if self.raw_arrow_schema is None and self.schema_ is None:
            raise ValueError("needs a schema: either base64 of a bare Arrow schema, or a native schema with its fields")
        return self

    @model_serializer(mode="wrap")
    def _write_raw_as_schema(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = handler(self)
        if "schema" in document:
            return document
        return {"schema" if key == "rawArrowSchema" else key: item for key, item in document.items()}


class SetInfo(Model):
    """Describes the dataset to people."""

    kind: Literal["SetInfo"] = "SetInfo"
    description: str | None = None
    keywords: tuple[str, ...] | None = None


class SetLicense(Model):
    """Says under which terms the data may be used."""

    kind: Literal["SetLicense"] = "SetLicense"
    short_name: str
    name: str
    spdx_id: str | None = None
    website_url: str


class SetAttachments(Model):
    """Replaces the texts that travel with the dataset."""

    kind: Literal["SetAttachments"] = "SetAttachments"
    attachments: Attachments


class UnknownEvent(Model):
    """An event of a later version: kept in the bytes of its block, not understood, never written by us."""

    kind: Literal["Unknown"] = "Unknown"
    type_code: U64


_AnyEvent = (
    AddData
    | ExecuteTransform
    | Seed
    | SetPollingSource
    | SetTransform
    | SetVocab
    | SetAttachments
    | SetInfo
    | SetLicense
    | SetDataSchema
    | AddPushSource
    | DisablePushSource
    | DisablePollingSource
    | SkipJsonSchema[UnknownEvent]
)
MetadataEvent = Annotated[_AnyEvent, Field(discriminator="kind"), spelled(_AnyEvent)]
