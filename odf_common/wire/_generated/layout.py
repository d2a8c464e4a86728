"""Made by `make codegen` from schemas/opendatafabric.fbs. Do not edit."""

from odf_common.wire.layout import EnumLayout, Slot

TABLES: dict[str, tuple[Slot, ...]] = {
    'DataTypeBinary': (
        Slot(index=0, name='fixed_length', kind='ulong', of='', vector=False, optional=True),
    ),
    'DataTypeBool': (
    ),
    'DataTypeDate': (
    ),
    'DataTypeDecimal': (
        Slot(index=0, name='precision', kind='uint', of='', vector=False, optional=False),
        Slot(index=1, name='scale', kind='int', of='', vector=False, optional=False),
    ),
    'DataTypeDuration': (
        Slot(index=0, name='unit', kind='enum', of='TimeUnit', vector=False, optional=True),
    ),
    'DataTypeFloat16': (
    ),
    'DataTypeFloat32': (
    ),
    'DataTypeFloat64': (
    ),
    'DataTypeInt8': (
    ),
    'DataTypeInt16': (
    ),
    'DataTypeInt32': (
    ),
    'DataTypeInt64': (
    ),
    'DataTypeUInt8': (
    ),
    'DataTypeUInt16': (
    ),
    'DataTypeUInt32': (
    ),
    'DataTypeUInt64': (
    ),
    'DataTypeList': (
        Slot(index=0, name='item_type', kind='union', of='DataType', vector=False, optional=False),
        Slot(index=2, name='fixed_length', kind='ulong', of='', vector=False, optional=True),
    ),
    'DataTypeMap': (
        Slot(index=0, name='key_type', kind='union', of='DataType', vector=False, optional=False),
        Slot(index=2, name='value_type', kind='union', of='DataType', vector=False, optional=False),
        Slot(index=4, name='keys_sorted', kind='bool', of='', vector=False, optional=True),
    ),
    'DataTypeNull': (
    ),
    'DataTypeOption': (
        Slot(index=0, name='inner', kind='union', of='DataType', vector=False, optional=False),
    ),
    'DataTypeStruct': (
        Slot(index=0, name='fields', kind='table', of='DataField', vector=True, optional=False),
    ),
    'DataTypeTime': (
        Slot(index=0, name='unit', kind='enum', of='TimeUnit', vector=False, optional=True),
    ),
    'DataTypeTimestamp': (
        Slot(index=0, name='unit', kind='enum', of='TimeUnit', vector=False, optional=True),
        Slot(index=1, name='timezone', kind='string', of='', vector=False, optional=False),
    ),
    'DataTypeString': (
    ),
    'DataField': (
        Slot(index=0, name='name', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='type', kind='union', of='DataType', vector=False, optional=False),
        Slot(index=3, name='extra', kind='table', of='ExtraAttributes', vector=False, optional=False),
    ),
    'DataSchema': (
        Slot(index=0, name='fields', kind='table', of='DataField', vector=True, optional=False),
        Slot(index=1, name='extra', kind='table', of='ExtraAttributes', vector=False, optional=False),
    ),
    'SqlQueryStep': (
        Slot(index=0, name='alias', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='query', kind='string', of='', vector=False, optional=False),
    ),
    'TemporalTable': (
        Slot(index=0, name='name', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='primary_key', kind='string', of='', vector=True, optional=False),
    ),
    'TransformSql': (
        Slot(index=0, name='engine', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='version', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='query', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='queries', kind='table', of='SqlQueryStep', vector=True, optional=False),
        Slot(index=4, name='temporal_tables', kind='table', of='TemporalTable', vector=True, optional=False),
    ),
    'MergeStrategyAppend': (
    ),
    'MergeStrategyLedger': (
        Slot(index=0, name='primary_key', kind='string', of='', vector=True, optional=False),
    ),
    'MergeStrategySnapshot': (
        Slot(index=0, name='primary_key', kind='string', of='', vector=True, optional=False),
        Slot(index=1, name='compare_columns', kind='string', of='', vector=True, optional=False),
    ),
    'MergeStrategyChangelogStream': (
        Slot(index=0, name='primary_key', kind='string', of='', vector=True, optional=False),
    ),
    'MergeStrategyUpsertStream': (
        Slot(index=0, name='primary_key', kind='string', of='', vector=True, optional=False),
    ),
    'ReadStepCsv': (
        Slot(index=0, name='ddl_schema', kind='string', of='', vector=True, optional=False),
        Slot(index=1, name='separator', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='encoding', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='quote', kind='string', of='', vector=False, optional=False),
        Slot(index=4, name='escape', kind='string', of='', vector=False, optional=False),
        Slot(index=5, name='header', kind='bool', of='', vector=False, optional=True),
        Slot(index=6, name='infer_schema', kind='bool', of='', vector=False, optional=True),
        Slot(index=7, name='null_value', kind='string', of='', vector=False, optional=False),
        Slot(index=8, name='date_format', kind='string', of='', vector=False, optional=False),
        Slot(index=9, name='timestamp_format', kind='string', of='', vector=False, optional=False),
        Slot(index=10, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'ReadStepGeoJson': (
        Slot(index=0, name='ddl_schema', kind='string', of='', vector=True, optional=False),
        Slot(index=1, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'ReadStepEsriShapefile': (
        Slot(index=0, name='ddl_schema', kind='string', of='', vector=True, optional=False),
        Slot(index=1, name='sub_path', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'ReadStepParquet': (
        Slot(index=0, name='ddl_schema', kind='string', of='', vector=True, optional=False),
        Slot(index=1, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'ReadStepJson': (
        Slot(index=0, name='sub_path', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='ddl_schema', kind='string', of='', vector=True, optional=False),
        Slot(index=2, name='date_format', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='encoding', kind='string', of='', vector=False, optional=False),
        Slot(index=4, name='timestamp_format', kind='string', of='', vector=False, optional=False),
        Slot(index=5, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'ReadStepNdJson': (
        Slot(index=0, name='ddl_schema', kind='string', of='', vector=True, optional=False),
        Slot(index=1, name='date_format', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='encoding', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='timestamp_format', kind='string', of='', vector=False, optional=False),
        Slot(index=4, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'ReadStepNdGeoJson': (
        Slot(index=0, name='ddl_schema', kind='string', of='', vector=True, optional=False),
        Slot(index=1, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'PrepStepDecompress': (
        Slot(index=0, name='format', kind='enum', of='CompressionFormat', vector=False, optional=False),
        Slot(index=1, name='sub_path', kind='string', of='', vector=False, optional=False),
    ),
    'PrepStepPipe': (
        Slot(index=0, name='command', kind='string', of='', vector=True, optional=False),
    ),
    'PrepStepWrapper': (
        Slot(index=0, name='value', kind='union', of='PrepStep', vector=False, optional=False),
    ),
    'EventTimeSourceFromMetadata': (
    ),
    'EventTimeSourceFromPath': (
        Slot(index=0, name='pattern', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='timestamp_format', kind='string', of='', vector=False, optional=False),
    ),
    'EventTimeSourceFromSystemTime': (
    ),
    'SourceCachingForever': (
    ),
    'RequestHeader': (
        Slot(index=0, name='name', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='value', kind='string', of='', vector=False, optional=False),
    ),
    'EnvVar': (
        Slot(index=0, name='name', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='value', kind='string', of='', vector=False, optional=False),
    ),
    'MqttTopicSubscription': (
        Slot(index=0, name='path', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='qos', kind='enum', of='MqttQos', vector=False, optional=True),
    ),
    'FetchStepUrl': (
        Slot(index=0, name='url', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='event_time', kind='union', of='EventTimeSource', vector=False, optional=False),
        Slot(index=3, name='cache', kind='union', of='SourceCaching', vector=False, optional=False),
        Slot(index=5, name='headers', kind='table', of='RequestHeader', vector=True, optional=False),
    ),
    'FetchStepFilesGlob': (
        Slot(index=0, name='path', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='event_time', kind='union', of='EventTimeSource', vector=False, optional=False),
        Slot(index=3, name='cache', kind='union', of='SourceCaching', vector=False, optional=False),
        Slot(index=5, name='order', kind='enum', of='SourceOrdering', vector=False, optional=True),
    ),
    'FetchStepContainer': (
        Slot(index=0, name='image', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='command', kind='string', of='', vector=True, optional=False),
        Slot(index=2, name='args', kind='string', of='', vector=True, optional=False),
        Slot(index=3, name='env', kind='table', of='EnvVar', vector=True, optional=False),
    ),
    'FetchStepMqtt': (
        Slot(index=0, name='host', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='port', kind='int', of='', vector=False, optional=False),
        Slot(index=2, name='username', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='password', kind='string', of='', vector=False, optional=False),
        Slot(index=4, name='topics', kind='table', of='MqttTopicSubscription', vector=True, optional=False),
    ),
    'FetchStepEthereumLogs': (
        Slot(index=0, name='chain_id', kind='ulong', of='', vector=False, optional=True),
        Slot(index=1, name='node_url', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='filter', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='signature', kind='string', of='', vector=False, optional=False),
    ),
    'Seed': (
        Slot(index=0, name='dataset_id', kind='bytes', of='', vector=False, optional=False),
        Slot(index=1, name='dataset_kind', kind='enum', of='DatasetKind', vector=False, optional=False),
    ),
    'OffsetInterval': (
        Slot(index=0, name='start', kind='ulong', of='', vector=False, optional=False),
        Slot(index=1, name='end', kind='ulong', of='', vector=False, optional=False),
    ),
    'DataSlice': (
        Slot(index=0, name='logical_hash', kind='bytes', of='', vector=False, optional=False),
        Slot(index=1, name='physical_hash', kind='bytes', of='', vector=False, optional=False),
        Slot(index=2, name='offset_interval', kind='table', of='OffsetInterval', vector=False, optional=False),
        Slot(index=3, name='size', kind='ulong', of='', vector=False, optional=False),
    ),
    'Checkpoint': (
        Slot(index=0, name='physical_hash', kind='bytes', of='', vector=False, optional=False),
        Slot(index=1, name='size', kind='ulong', of='', vector=False, optional=False),
    ),
    'SourceState': (
        Slot(index=0, name='source_name', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='kind', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='value', kind='string', of='', vector=False, optional=False),
    ),
    'AddData': (
        Slot(index=0, name='prev_checkpoint', kind='bytes', of='', vector=False, optional=False),
        Slot(index=1, name='prev_offset', kind='ulong', of='', vector=False, optional=True),
        Slot(index=2, name='new_data', kind='table', of='DataSlice', vector=False, optional=False),
        Slot(index=3, name='new_checkpoint', kind='table', of='Checkpoint', vector=False, optional=False),
        Slot(index=4, name='new_watermark', kind='timestamp', of='', vector=False, optional=False),
        Slot(index=5, name='new_source_state', kind='table', of='SourceState', vector=False, optional=False),
        Slot(index=6, name='extra', kind='table', of='ExtraAttributes', vector=False, optional=False),
    ),
    'ExecuteTransformInput': (
        Slot(index=0, name='dataset_id', kind='bytes', of='', vector=False, optional=False),
        Slot(index=1, name='prev_block_hash', kind='bytes', of='', vector=False, optional=False),
        Slot(index=2, name='new_block_hash', kind='bytes', of='', vector=False, optional=False),
        Slot(index=3, name='prev_offset', kind='ulong', of='', vector=False, optional=True),
        Slot(index=4, name='new_offset', kind='ulong', of='', vector=False, optional=True),
    ),
    'ExecuteTransform': (
        Slot(index=0, name='query_inputs', kind='table', of='ExecuteTransformInput', vector=True, optional=False),
        Slot(index=1, name='prev_checkpoint', kind='bytes', of='', vector=False, optional=False),
        Slot(index=2, name='prev_offset', kind='ulong', of='', vector=False, optional=True),
        Slot(index=3, name='new_data', kind='table', of='DataSlice', vector=False, optional=False),
        Slot(index=4, name='new_checkpoint', kind='table', of='Checkpoint', vector=False, optional=False),
        Slot(index=5, name='new_watermark', kind='timestamp', of='', vector=False, optional=False),
    ),
    'SetPollingSource': (
        Slot(index=0, name='fetch', kind='union', of='FetchStep', vector=False, optional=False),
        Slot(index=2, name='prepare', kind='table', of='PrepStepWrapper', vector=True, optional=False),
        Slot(index=3, name='read', kind='union', of='ReadStep', vector=False, optional=False),
        Slot(index=5, name='preprocess', kind='union', of='Transform', vector=False, optional=False),
        Slot(index=7, name='merge', kind='union', of='MergeStrategy', vector=False, optional=False),
    ),
    'AddPushSource': (
        Slot(index=0, name='source_name', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='read', kind='union', of='ReadStep', vector=False, optional=False),
        Slot(index=3, name='preprocess', kind='union', of='Transform', vector=False, optional=False),
        Slot(index=5, name='merge', kind='union', of='MergeStrategy', vector=False, optional=False),
    ),
    'DisablePushSource': (
        Slot(index=0, name='source_name', kind='string', of='', vector=False, optional=False),
    ),
    'DisablePollingSource': (
    ),
    'TransformInput': (
        Slot(index=0, name='dataset_ref', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='alias', kind='string', of='', vector=False, optional=False),
    ),
    'SetTransform': (
        Slot(index=0, name='inputs', kind='table', of='TransformInput', vector=True, optional=False),
        Slot(index=1, name='transform', kind='union', of='Transform', vector=False, optional=False),
    ),
    'SetVocab': (
        Slot(index=0, name='offset_column', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='operation_type_column', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='system_time_column', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='event_time_column', kind='string', of='', vector=False, optional=False),
    ),
    'SetDataSchema': (
        Slot(index=0, name='raw_arrow_schema', kind='bytes', of='', vector=False, optional=False),
        Slot(index=1, name='schema', kind='table', of='DataSchema', vector=False, optional=False),
    ),
    'SetInfo': (
        Slot(index=0, name='description', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='keywords', kind='string', of='', vector=True, optional=False),
    ),
    'SetLicense': (
        Slot(index=0, name='short_name', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='name', kind='string', of='', vector=False, optional=False),
        Slot(index=2, name='spdx_id', kind='string', of='', vector=False, optional=False),
        Slot(index=3, name='website_url', kind='string', of='', vector=False, optional=False),
    ),
    'AttachmentEmbedded': (
        Slot(index=0, name='path', kind='string', of='', vector=False, optional=False),
        Slot(index=1, name='content', kind='string', of='', vector=False, optional=False),
    ),
    'AttachmentsEmbedded': (
        Slot(index=0, name='items', kind='table', of='AttachmentEmbedded', vector=True, optional=False),
    ),
    'SetAttachments': (
        Slot(index=0, name='attachments', kind='union', of='Attachments', vector=False, optional=False),
    ),
    'ExtraAttributes': (
        Slot(index=0, name='entries', kind='string', of='', vector=False, optional=False),
    ),
    'Manifest': (
        Slot(index=0, name='kind', kind='long', of='', vector=False, optional=False),
        Slot(index=1, name='version', kind='int', of='', vector=False, optional=False),
        Slot(index=2, name='content', kind='bytes', of='', vector=False, optional=False),
    ),
    'MetadataBlock': (
        Slot(index=0, name='system_time', kind='timestamp', of='', vector=False, optional=False),
        Slot(index=1, name='prev_block_hash', kind='bytes', of='', vector=False, optional=False),
        Slot(index=2, name='sequence_number', kind='ulong', of='', vector=False, optional=False),
        Slot(index=3, name='event', kind='union', of='MetadataEvent', vector=False, optional=False),
    ),
}

UNIONS: dict[str, tuple[str, ...]] = {
    'DataType': (
        'DataTypeBinary',
        'DataTypeBool',
        'DataTypeDate',
        'DataTypeDecimal',
        'DataTypeDuration',
        'DataTypeFloat16',
        'DataTypeFloat32',
        'DataTypeFloat64',
        'DataTypeInt8',
        'DataTypeInt16',
        'DataTypeInt32',
        'DataTypeInt64',
        'DataTypeUInt8',
        'DataTypeUInt16',
        'DataTypeUInt32',
        'DataTypeUInt64',
        'DataTypeList',
        'DataTypeMap',
        'DataTypeNull',
        'DataTypeOption',
        'DataTypeStruct',
        'DataTypeTime',
        'DataTypeTimestamp',
        'DataTypeString',
    ),
    'Transform': (
        'TransformSql',
    ),
    'MergeStrategy': (
        'MergeStrategyAppend',
        'MergeStrategyLedger',
        'MergeStrategySnapshot',
        'MergeStrategyChangelogStream',
        'MergeStrategyUpsertStream',
    ),
    'ReadStep': (
        'ReadStepCsv',
        'ReadStepGeoJson',
        'ReadStepEsriShapefile',
        'ReadStepParquet',
        'ReadStepJson',
        'ReadStepNdJson',
        'ReadStepNdGeoJson',
    ),
    'PrepStep': (
        'PrepStepDecompress',
        'PrepStepPipe',
    ),
    'EventTimeSource': (
        'EventTimeSourceFromMetadata',
        'EventTimeSourceFromPath',
        'EventTimeSourceFromSystemTime',
    ),
    'SourceCaching': (
        'SourceCachingForever',
    ),
    'FetchStep': (
        'FetchStepUrl',
        'FetchStepFilesGlob',
        'FetchStepContainer',
        'FetchStepMqtt',
        'FetchStepEthereumLogs',
    ),
    'Attachments': (
        'AttachmentsEmbedded',
    ),
    'MetadataEvent': (
        'AddData',
        'ExecuteTransform',
        'Seed',
        'SetPollingSource',
        'SetTransform',
        'SetVocab',
        'SetAttachments',
        'SetInfo',
        'SetLicense',
        'SetDataSchema',
        'AddPushSource',
        'DisablePushSource',
        'DisablePollingSource',
    ),
}

ENUMS: dict[str, EnumLayout] = {
    'TimeUnit': EnumLayout(scalar='short', members=('Second', 'Millisecond', 'Microsecond', 'Nanosecond')),
    'CompressionFormat': EnumLayout(scalar='int', members=('Gzip', 'Zip')),
    'MqttQos': EnumLayout(scalar='int', members=('AtMostOnce', 'AtLeastOnce', 'ExactlyOnce')),
    'SourceOrdering': EnumLayout(scalar='int', members=('ByEventTime', 'ByName')),
    'DatasetKind': EnumLayout(scalar='int', members=('Root', 'Derivative')),
}
