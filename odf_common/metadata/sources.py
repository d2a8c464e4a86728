"""Where data comes from and how it becomes rows: fetch, prepare, read and merge steps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from odf_common.metadata.base import I32, U64, Bool, Model, TextEnum, renamed_schema, spelled
from odf_common.metadata.data_schema import DataSchema


class EventTimeSourceFromMetadata(Model):
    """Event time as the source tells it, such as an HTTP Last-Modified."""

    kind: Literal["FromMetadata"] = "FromMetadata"


class EventTimeSourceFromPath(Model):
    """Event time found in the file's name by a regular expression."""

    kind: Literal["FromPath"] = "FromPath"
    pattern: str
    timestamp_format: str | None = None


class EventTimeSourceFromSystemTime(Model):
    """Event time is the time of ingestion."""

    kind: Literal["FromSystemTime"] = "FromSystemTime"


_AnyEventTimeSource = EventTimeSourceFromMetadata | EventTimeSourceFromPath | EventTimeSourceFromSystemTime
EventTimeSource = Annotated[
    _AnyEventTimeSource, Field(discriminator="kind"), spelled(_AnyEventTimeSource, short_form=True)
]


class SourceCachingForever(Model):
    """Once fetched, never fetched again."""

    kind: Literal["Forever"] = "Forever"


SourceCaching = Annotated[SourceCachingForever, spelled(SourceCachingForever, short_form=True)]


class RequestHeader(Model):
    """An HTTP header."""

    name: str
    value: str


class EnvVar(Model):
    """An environment variable; without a value it is taken from the environment."""

    name: str
    value: str | None = None


class MqttQos(TextEnum):
    """Quality of service of an MQTT subscription; AtMostOnce where none is given."""

    AT_MOST_ONCE = "AtMostOnce"
    AT_LEAST_ONCE = "AtLeastOnce"
    EXACTLY_ONCE = "ExactlyOnce"


class MqttTopicSubscription(Model):
    """An MQTT topic filter."""

    path: str
    qos: MqttQos | None = None


class SourceOrdering(TextEnum):
    """The order in which files are taken."""

    BY_EVENT_TIME = "ByEventTime"
    BY_NAME = "ByName"


class FetchStepUrl(Model):
    """Fetch one file over HTTP, FTP or from the local file system."""

    kind: Literal["Url"] = "Url"
    url: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    headers: tuple[RequestHeader, ...] | None = None


class FetchStepFilesGlob(Model):
    """Fetch files that match a pattern, one after another."""

    kind: Literal["FilesGlob"] = "FilesGlob"
    path: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    order: SourceOrdering | None = None


class FetchStepContainer(Model):
    """Run a container that prints data."""

    kind: Literal["Container"] = "Container"
    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None


class FetchStepMqtt(Model):
    """Subscribe to topics of an MQTT broker (since ODF 0.35)."""

    kind: Literal["Mqtt"] = "Mqtt"
    host: str
    port: I32
    username: str | None = None
    password: str | None = None
    topics: tuple[MqttTopicSubscription, ...]


class FetchStepEthereumLogs(Model):
    """Read the logs of an Ethereum node (since ODF 0.36)."""

    kind: Literal["EthereumLogs"] = "EthereumLogs"
    chain_id: U64 | None = None
    node_url: str | None = None
    filter: str | None = None
    signature: str | None = None


_AnyFetchStep = FetchStepUrl | FetchStepFilesGlob | FetchStepContainer | FetchStepMqtt | FetchStepEthereumLogs
FetchStep = Annotated[_AnyFetchStep, Field(discriminator="kind"), spelled(_AnyFetchStep)]


class CompressionFormat(TextEnum):
    """How fetched data is packed."""

    GZIP = "Gzip"
    ZIP = "Zip"


class PrepStepDecompress(Model):
    """Unpack an archive; `sub_path` picks a file of it."""

    kind: Literal["Decompress"] = "Decompress"
    format: CompressionFormat
    sub_path: str | None = None


class PrepStepPipe(Model):
    """Send the data through an external command."""

    kind: Literal["Pipe"] = "Pipe"
    command: tuple[str, ...]


_AnyPrepStep = PrepStepDecompress | PrepStepPipe
PrepStep = Annotated[_AnyPrepStep, Field(discriminator="kind"), spelled(_AnyPrepStep)]


def _accept_list_as_schema(json_schema: dict[str, Any]) -> None:
    properties = json_schema["properties"]
    properties["schema"] = {"anyOf": [properties["ddlSchema"], properties["schema"]], "default": None}


class ReadStepBase(Model):
    """What all read steps share: the columns, either as DDL strings or as a native schema (since ODF 0.38).

    In text a DDL list is called `schema` as in ODF 0.36; `ddlSchema`, its name since 0.38, is read as well.
    """

    model_config = {"json_schema_extra": _accept_list_as_schema}

    @model_validator(mode="before")
    @classmethod
    def _read_list_as_ddl(cls, value: Any) -> Any:
        return renamed_schema(value, kind=list, name="ddlSchema")

    @model_serializer(mode="wrap")
    def _write_ddl_as_schema(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = handler(self)
        if "schema" in document:
            return document
        return {"schema" if key == "ddlSchema" else key: item for key, item in document.items()}


DdlSchema = tuple[str, ...]
NativeSchema = Annotated[DataSchema | None, Field(alias="schema")]


class ReadStepCsv(ReadStepBase):
    """Comma-separated values. Absent options mean: `,`, utf8, `"`, no escape, no header, no inference, rfc3339."""

    kind: Literal["Csv"] = "Csv"
    ddl_schema: DdlSchema | None = None
    schema_: NativeSchema = None
    separator: str | None = None
    encoding: str | None = None
    quote: str | None = None
    escape: str | None = None
    header: Bool | None = None
    infer_schema: Bool | None = None
    null_value: str | None = None
    date_format: str | None = None
    timestamp_format: str | None = None


class ReadStepGeoJson(ReadStepBase):
    """A GeoJSON FeatureCollection."""

    kind: Literal["GeoJson"] = "GeoJson"
    ddl_schema: DdlSchema | None = None
    schema_: NativeSchema = None


class ReadStepEsriShapefile(ReadStepBase):
    """An ESRI shapefile in a zip archive."""

    kind: Literal["EsriShapefile"] = "EsriShapefile"
    ddl_schema: DdlSchema | None = None
    schema_: NativeSchema = None
    sub_path: str | None = None


class ReadStepParquet(ReadStepBase):
    """An Apache Parquet file."""

    kind: Literal["Parquet"] = "Parquet"
    ddl_schema: DdlSchema | None = None
    schema_: NativeSchema = None


class ReadStepJson(ReadStepBase):
    """An array of objects, at the root or at `sub_path`."""

    kind: Literal["Json"] = "Json"
    sub_path: str | None = None
    ddl_schema: DdlSchema | None = None
    schema_: NativeSchema = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None


class ReadStepNdJson(ReadStepBase):
    """One JSON object per line."""

    kind: Literal["NdJson"] = "NdJson"
    ddl_schema: DdlSchema | None = None
    schema_: NativeSchema = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None


class ReadStepNdGeoJson(ReadStepBase):
    """One GeoJSON Feature per line."""

    kind: Literal["NdGeoJson"] = "NdGeoJson"
    ddl_schema: DdlSchema | None = None
    schema_: NativeSchema = None


_AnyReadStep = (
    ReadStepCsv
    | ReadStepGeoJson
    | ReadStepEsriShapefile
    | ReadStepParquet
    | ReadStepJson
    | ReadStepNdJson
    | ReadStepNdGeoJson
)
ReadStep = Annotated[_AnyReadStep, Field(discriminator="kind"), spelled(_AnyReadStep)]


class MergeStrategyAppend(Model):
    """Every row is new."""

    kind: Literal["Append"] = "Append"


class MergeStrategyLedger(Model):
    """Rows whose key is not known yet are new."""

    kind: Literal["Ledger"] = "Ledger"
    primary_key: tuple[str, ...]


class MergeStrategySnapshot(Model):
    """The input is the full current state; differences become retractions and corrections."""

    kind: Literal["Snapshot"] = "Snapshot"
    primary_key: tuple[str, ...]
    compare_columns: tuple[str, ...] | None = None


class MergeStrategyChangelogStream(Model):
    """The input already says what changed (since ODF 0.37)."""

    kind: Literal["ChangelogStream"] = "ChangelogStream"
    primary_key: tuple[str, ...]


class MergeStrategyUpsertStream(Model):
    """The input says the latest values by key (since ODF 0.37)."""

    kind: Literal["UpsertStream"] = "UpsertStream"
    primary_key: tuple[str, ...]


_AnyMergeStrategy = (
    MergeStrategyAppend
    | MergeStrategyLedger
    | MergeStrategySnapshot
    | MergeStrategyChangelogStream
    | MergeStrategyUpsertStream
)
MergeStrategy = Annotated[_AnyMergeStrategy, Field(discriminator="kind"), spelled(_AnyMergeStrategy)]
