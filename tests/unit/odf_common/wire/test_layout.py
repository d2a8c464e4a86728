from __future__ import annotations

from odf_common.metadata.base import Model
from odf_common.metadata.manifests import MetadataBlock
from odf_common.wire._generated.layout import ENUMS, TABLES, UNIONS
from odf_common.wire.layout import EnumLayout, Slot
from odf_common.wire.plan import ENUM_MODELS, PLANS
from tests.strategies import reachable

SLOTS = """
AddData: 0 prev_checkpoint:bytes; 1 prev_offset:u64?; 2 new_data:tbl DataSlice; 3 new_checkpoint:tbl Checkpoint;
    4 new_watermark:struct Timestamp; 5 new_source_state:tbl SourceState; 6 extra:tbl ExtraAttributes
AddPushSource: 0 source_name:str; 1 read_type:u8, 2 read:union ReadStep; 3 preprocess_type:u8, 4
    preprocess:union Transform; 5 merge_type:u8, 6 merge:union MergeStrategy
AttachmentEmbedded: 0 path:str; 1 content:str
AttachmentsEmbedded: 0 items:[AttachmentEmbedded]
Checkpoint: 0 physical_hash:bytes; 1 size:u64
DataField: 0 name:str; 1 type_type:u8, 2 type:union DataType; 3 extra:tbl ExtraAttributes
DataSchema: 0 fields:[DataField]; 1 extra:tbl ExtraAttributes
DataSlice: 0 logical_hash:bytes; 1 physical_hash:bytes; 2 offset_interval:tbl OffsetInterval; 3 size:u64
DataTypeBinary: 0 fixed_length:u64?
DataTypeBool:
DataTypeDate:
DataTypeDecimal: 0 precision:u32; 1 scale:i32
DataTypeDuration: 0 unit:enum TimeUnit?
DataTypeFloat16:
DataTypeFloat32:
DataTypeFloat64:
DataTypeInt16:
DataTypeInt32:
DataTypeInt64:
DataTypeInt8:
DataTypeList: 0 item_type_type:u8, 1 item_type:union DataType; 2 fixed_length:u64?
DataTypeMap: 0 key_type_type:u8, 1 key_type:union DataType; 2 value_type_type:u8, 3 value_type:union DataType; 4
    keys_sorted:bool?
DataTypeNull:
DataTypeOption: 0 inner_type:u8, 1 inner:union DataType
DataTypeString:
DataTypeStruct: 0 fields:[DataField]
DataTypeTime: 0 unit:enum TimeUnit?
DataTypeTimestamp: 0 unit:enum TimeUnit?; 1 timezone:str
DataTypeUInt16:
DataTypeUInt32:
DataTypeUInt64:
DataTypeUInt8:
DisablePollingSource:
DisablePushSource: 0 source_name:str
EnvVar: 0 name:str; 1 value:str
EventTimeSourceFromMetadata:
EventTimeSourceFromPath: 0 pattern:str; 1 timestamp_format:str
EventTimeSourceFromSystemTime:
ExecuteTransform: 0 query_inputs:[ExecuteTransformInput]; 1 prev_checkpoint:bytes; 2 prev_offset:u64?; 3
    new_data:tbl DataSlice; 4 new_checkpoint:tbl Checkpoint; 5 new_watermark:struct Timestamp
ExecuteTransformInput: 0 dataset_id:bytes; 1 prev_block_hash:bytes; 2 new_block_hash:bytes; 3 prev_offset:u64?;
    4 new_offset:u64?
ExtraAttributes: 0 entries:str
FetchStepContainer: 0 image:str; 1 command:[str]; 2 args:[str]; 3 env:[EnvVar]
FetchStepEthereumLogs: 0 chain_id:u64?; 1 node_url:str; 2 filter:str; 3 signature:str
FetchStepFilesGlob: 0 path:str; 1 event_time_type:u8, 2 event_time:union EventTimeSource; 3 cache_type:u8, 4
    cache:union SourceCaching; 5 order:enum SourceOrdering?
FetchStepMqtt: 0 host:str; 1 port:i32; 2 username:str; 3 password:str; 4 topics:[MqttTopicSubscription]
FetchStepUrl: 0 url:str; 1 event_time_type:u8, 2 event_time:union EventTimeSource; 3 cache_type:u8, 4
    cache:union SourceCaching; 5 headers:[RequestHeader]
Manifest: 0 kind:i64; 1 version:i32; 2 content:bytes
MergeStrategyAppend:
MergeStrategyChangelogStream: 0 primary_key:[str]
MergeStrategyLedger: 0 primary_key:[str]
MergeStrategySnapshot: 0 primary_key:[str]; 1 compare_columns:[str]
MergeStrategyUpsertStream: 0 primary_key:[str]
MetadataBlock: 0 system_time:struct Timestamp; 1 prev_block_hash:bytes; 2 sequence_number:u64; 3 event_type:u8,
    4 event:union MetadataEvent
MqttTopicSubscription: 0 path:str; 1 qos:enum MqttQos?
OffsetInterval: 0 start:u64; 1 end:u64
PrepStepDecompress: 0 format:enum CompressionFormat; 1 sub_path:str
PrepStepPipe: 0 command:[str]
PrepStepWrapper: 0 value_type:u8, 1 value:union PrepStep
ReadStepCsv: 0 ddl_schema:[str]; 1 separator:str; 2 encoding:str; 3 quote:str; 4 escape:str; 5 header:bool?; 6
    infer_schema:bool?; 7 null_value:str; 8 date_format:str; 9 timestamp_format:str; 10 schema:tbl DataSchema
ReadStepEsriShapefile: 0 ddl_schema:[str]; 1 sub_path:str; 2 schema:tbl DataSchema
ReadStepGeoJson: 0 ddl_schema:[str]; 1 schema:tbl DataSchema
ReadStepJson: 0 sub_path:str; 1 ddl_schema:[str]; 2 date_format:str; 3 encoding:str; 4 timestamp_format:str; 5
    schema:tbl DataSchema
ReadStepNdGeoJson: 0 ddl_schema:[str]; 1 schema:tbl DataSchema
ReadStepNdJson: 0 ddl_schema:[str]; 1 date_format:str; 2 encoding:str; 3 timestamp_format:str; 4 schema:tbl
    DataSchema
ReadStepParquet: 0 ddl_schema:[str]; 1 schema:tbl DataSchema
RequestHeader: 0 name:str; 1 value:str
Seed: 0 dataset_id:bytes; 1 dataset_kind:enum DatasetKind
SetAttachments: 0 attachments_type:u8, 1 attachments:union Attachments
SetDataSchema: 0 raw_arrow_schema:bytes; 1 schema:tbl DataSchema
SetInfo: 0 description:str; 1 keywords:[str]
SetLicense: 0 short_name:str; 1 name:str; 2 spdx_id:str; 3 website_url:str
SetPollingSource: 0 fetch_type:u8, 1 fetch:union FetchStep; 2 prepare:[PrepStepWrapper]; 3 read_type:u8, 4
    read:union ReadStep; 5 preprocess_type:u8, 6 preprocess:union Transform; 7 merge_type:u8, 8 merge:union
    MergeStrategy
SetTransform: 0 inputs:[TransformInput]; 1 transform_type:u8, 2 transform:union Transform
SetVocab: 0 offset_column:str; 1 operation_type_column:str; 2 system_time_column:str; 3 event_time_column:str
SourceCachingForever:
SourceState: 0 source_name:str; 1 kind:str; 2 value:str
SqlQueryStep: 0 alias:str; 1 query:str
TemporalTable: 0 name:str; 1 primary_key:[str]
TransformInput: 0 dataset_ref:str; 1 alias:str
TransformSql: 0 engine:str; 1 version:str; 2 query:str; 3 queries:[SqlQueryStep]; 4
    temporal_tables:[TemporalTable]
"""
"""Every table in slot order, as ODF 0.38 and the reference implementation have them."""

MEMBERS = {
    "ReadStep": "Csv GeoJson EsriShapefile Parquet Json NdJson NdGeoJson",
    "Transform": "Sql",
    "MergeStrategy": "Append Ledger Snapshot ChangelogStream UpsertStream",
    "Attachments": "Embedded",
    "EventTimeSource": "FromMetadata FromPath FromSystemTime",
    "SourceCaching": "Forever",
    "FetchStep": "Url FilesGlob Container Mqtt EthereumLogs",
    "PrepStep": "Decompress Pipe",
    "DataType": "Binary Bool Date Decimal Duration Float16 Float32 Float64 Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 "
    "UInt64 List Map Null Option Struct Time Timestamp String",
}
"""Members of unions from 1, without the name of the union before each. Only events are called by their full names."""

EVENTS = (
    "AddData ExecuteTransform Seed SetPollingSource SetTransform SetVocab SetAttachments SetInfo SetLicense "
    "SetDataSchema AddPushSource DisablePushSource DisablePollingSource"
)

SCALARS = {"short": "i16", "int": "i32", "uint": "u32", "long": "i64", "ulong": "u64", "string": "str"}


def described(slot: Slot) -> str:
    """A slot in the notation of SLOTS."""
    if slot.kind == "union":
        return f"{slot.index} {slot.name}_type:u8, {slot.index + 1} {slot.name}:union {slot.of}"
    if slot.vector:
        return f"{slot.index} {slot.name}:[{slot.of or SCALARS[slot.kind]}]"
    if slot.kind == "timestamp":
        return f"{slot.index} {slot.name}:struct Timestamp"
    kind = {"table": f"tbl {slot.of}", "enum": f"enum {slot.of}"}.get(slot.kind, SCALARS.get(slot.kind, slot.kind))
    return f"{slot.index} {slot.name}:{kind}{'?' * slot.optional}"


def facts() -> dict[str, str]:
    lines = SLOTS.strip().replace("\n    ", " ").splitlines()
    return {name: slots.strip() for name, _, slots in (line.partition(":") for line in lines)}


def test_every_table_has_its_slots_in_order() -> None:
    assert {name: "; ".join(described(slot) for slot in slots) for name, slots in TABLES.items()} == facts()


def test_every_union_has_its_members_in_order() -> None:
    expected = {union: tuple(f"{union}{name}" for name in names.split()) for union, names in MEMBERS.items()}
    assert expected | {"MetadataEvent": tuple(EVENTS.split())} == UNIONS


def test_every_enum_has_its_members_in_order_and_its_width() -> None:
    assert {
        "DatasetKind": EnumLayout("int", ("Root", "Derivative")),
        "MqttQos": EnumLayout("int", ("AtMostOnce", "AtLeastOnce", "ExactlyOnce")),
        "SourceOrdering": EnumLayout("int", ("ByEventTime", "ByName")),
        "CompressionFormat": EnumLayout("int", ("Gzip", "Zip")),
        "TimeUnit": EnumLayout("short", ("Second", "Millisecond", "Microsecond", "Nanosecond")),
    } == ENUMS


def test_every_enum_has_a_model_with_its_members() -> None:
    for name, layout in ENUMS.items():
        assert tuple(member.value for member in ENUM_MODELS[name]) == layout.members


def test_every_table_but_wrappers_has_a_model_with_its_fields() -> None:
    for name, plan in PLANS.items():
        if plan.transparent:
            assert name.endswith("Wrapper")
        elif issubclass(plan.model, Model):
            fields = {field for field in plan.model.model_fields if field != "kind" or name == "SourceState"}
            assert {p.attribute for p in plan.slots} == fields
        else:
            assert name == "ExtraAttributes"


def test_every_model_of_a_table_is_made_by_the_strategy_of_blocks() -> None:
    assert {plan.model for plan in PLANS.values() if not plan.transparent} <= set(reachable(MetadataBlock))
