"""Events in text with every property that they and their parts can have, in the order in which they are written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from odf_common.metadata.manifests import MetadataBlock

Document = dict[str, Any]

DATASET_ID = "did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6"
HASH = "f16209eb949bd8ff0bb1d827f11809aebc6bd0d5955c7f368469a913c70d196620272"
LOGICAL_HASH = "f9680c001203576798821649f2a6421afd2d5de18a507b8dd2c9263590e8059d5dfc768d7de"
U64_MAX = 2**64 - 1

EXTRA = {"example.org/a": [None, {"b": 0.5}], "example.org/ü": {}}

DATA_TYPES: tuple[Document, ...] = (
    {"kind": "Binary", "fixedLength": U64_MAX},
    *({"kind": kind} for kind in ("Bool", "Date", "Float16", "Float32", "Float64", "Int8", "Int16", "Int32", "Int64")),
    *({"kind": kind} for kind in ("UInt8", "UInt16", "UInt32", "UInt64", "Null", "String")),
    {"kind": "Decimal", "precision": 38, "scale": -2},
    {"kind": "Duration", "unit": "Second"},
    {"kind": "List", "itemType": {"kind": "Option", "inner": {"kind": "Int32"}}, "fixedLength": 0},
    {"kind": "Map", "keyType": {"kind": "String"}, "valueType": {"kind": "Bool"}, "keysSorted": False},
    {"kind": "Option", "inner": {"kind": "String"}},
    {"kind": "Struct", "fields": [{"name": "inside", "type": {"kind": "Date"}, "extra": {}}]},
    {"kind": "Time", "unit": "Microsecond"},
    {"kind": "Timestamp", "unit": "Nanosecond", "timezone": "Europe/Berlin"},
)

DATA_SCHEMA: Document = {
    "fields": [{"name": f"c{number}", "type": kind, "extra": EXTRA} for number, kind in enumerate(DATA_TYPES)],
    "extra": EXTRA,
}

SMALL_SCHEMA: Document = {"fields": [{"name": "a", "type": {"kind": "Int64"}}]}

DDL = ["a BIGINT", '"b c" STRING']

READ_STEPS: tuple[Document, ...] = (
    {
        "kind": "Csv",
        "ddlSchema": DDL,
        "schema": SMALL_SCHEMA,
        "separator": ",",
        "encoding": "utf8",
        "quote": '"',
        "escape": "\\",
        "header": False,
        "inferSchema": True,
        "nullValue": "",
        "dateFormat": "rfc3339",
        "timestampFormat": "rfc3339",
    },
    {
        "kind": "Json",
        "subPath": "a.b",
        "ddlSchema": DDL,
        "schema": SMALL_SCHEMA,
        "dateFormat": "rfc3339",
        "encoding": "utf8",
        "timestampFormat": "rfc3339",
    },
    {
        "kind": "NdJson",
        "ddlSchema": DDL,
        "schema": SMALL_SCHEMA,
        "dateFormat": "rfc3339",
        "encoding": "utf8",
        "timestampFormat": "rfc3339",
    },
    {"kind": "GeoJson", "ddlSchema": DDL, "schema": SMALL_SCHEMA},
    {"kind": "NdGeoJson", "ddlSchema": DDL, "schema": SMALL_SCHEMA},
    {"kind": "Parquet", "ddlSchema": DDL, "schema": SMALL_SCHEMA},
    {"kind": "EsriShapefile", "ddlSchema": DDL, "schema": SMALL_SCHEMA, "subPath": "a.shp"},
    # As ODF 0.36 spells it.
    {"kind": "GeoJson", "schema": DDL},
    {"kind": "EsriShapefile", "schema": DDL, "subPath": "a.shp"},
)

MERGE_STRATEGIES: tuple[Document, ...] = (
    {"kind": "Append"},
    {"kind": "Ledger", "primaryKey": ["id"]},
    {"kind": "Snapshot", "primaryKey": ["id", "day"], "compareColumns": ["a"]},
    {"kind": "ChangelogStream", "primaryKey": ["id"]},
    {"kind": "UpsertStream", "primaryKey": []},
)

TRANSFORM: Document = {
    "kind": "Sql",
    "engine": "spark",
    "version": "3.5",
    "query": "SELECT 0",
    "queries": [{"alias": "first", "query": "SELECT 1"}, {"query": "SELECT * FROM first"}],
    "temporalTables": [{"name": "rates", "primaryKey": ["currency"]}],
}

EVENT_TIMES: tuple[Document, ...] = (
    {"kind": "FromMetadata"},
    {"kind": "FromPath", "pattern": r"(\d{4})", "timestampFormat": "%Y"},
    {"kind": "FromSystemTime"},
)

CACHE: Document = {"kind": "Forever"}

FETCH_STEPS: tuple[Document, ...] = (
    *(
        {
            "kind": "Url",
            "url": "https://example.org/a.csv",
            "eventTime": event_time,
            "cache": CACHE,
            "headers": [{"name": "Accept", "value": "text/csv"}],
        }
        for event_time in EVENT_TIMES
    ),
    {"kind": "FilesGlob", "path": "./*.csv", "eventTime": EVENT_TIMES[1], "cache": CACHE, "order": "ByEventTime"},
    {
        "kind": "Container",
        "image": "example/fetch:1",
        "command": ["fetch"],
        "args": [],
        "env": [{"name": "TOKEN"}, {"name": "MODE", "value": ""}],
    },
    {
        "kind": "Mqtt",
        "host": "localhost",
        "port": -(2**31),
        "username": "",
        "password": "",
        "topics": [{"path": "a/#", "qos": "AtMostOnce"}, {"path": "b", "qos": "ExactlyOnce"}, {"path": "c"}],
    },
    {"kind": "EthereumLogs", "chainId": 0, "nodeUrl": "wss://example.org", "filter": "a = 1", "signature": "A(int b)"},
)

PREP_STEPS: list[Document] = [
    {"kind": "Decompress", "format": "Gzip"},
    {"kind": "Decompress", "format": "Zip", "subPath": "a/b.csv"},
    {"kind": "Pipe", "command": ["sed", "1d"]},
]

NEW_DATA: Document = {
    "logicalHash": LOGICAL_HASH,
    "physicalHash": HASH,
    "offsetInterval": {"start": 0, "end": U64_MAX},
    "size": 0,
}

NEW_CHECKPOINT: Document = {"physicalHash": HASH, "size": 1}

EVENTS: dict[str, Document] = {
    "Seed root": {"kind": "Seed", "datasetId": DATASET_ID, "datasetKind": "Root"},
    "Seed derivative": {"kind": "Seed", "datasetId": DATASET_ID, "datasetKind": "Derivative"},
    "AddData": {
        "kind": "AddData",
        "prevCheckpoint": HASH,
        "prevOffset": 0,
        "newData": NEW_DATA,
        "newCheckpoint": NEW_CHECKPOINT,
        "newWatermark": "0001-01-01T00:00:00.000000001Z",
        "newSourceState": {"sourceName": "default", "kind": "odf/etag", "value": "é"},
        "extra": EXTRA,
    },
    "ExecuteTransform": {
        "kind": "ExecuteTransform",
        "queryInputs": [
            {
                "datasetId": DATASET_ID,
                "prevBlockHash": HASH,
                "newBlockHash": HASH,
                "prevOffset": 0,
                "newOffset": U64_MAX,
            },
            {"datasetId": DATASET_ID},
        ],
        "prevCheckpoint": HASH,
        "prevOffset": U64_MAX,
        "newData": NEW_DATA,
        "newCheckpoint": NEW_CHECKPOINT,
        "newWatermark": "9999-12-31T23:59:59.999999999Z",
    },
    **{
        f"SetPollingSource {number} {fetch['kind']}": {
            "kind": "SetPollingSource",
            "fetch": fetch,
            "prepare": PREP_STEPS,
            "read": READ_STEPS[number],
            "preprocess": TRANSFORM,
            "merge": MERGE_STRATEGIES[number % len(MERGE_STRATEGIES)],
        }
        for number, fetch in enumerate(FETCH_STEPS)
    },
    **{
        f"AddPushSource {number} {read['kind']}": {
            "kind": "AddPushSource",
            "sourceName": "default",
            "read": read,
            "preprocess": TRANSFORM,
            "merge": MERGE_STRATEGIES[number % len(MERGE_STRATEGIES)],
        }
        for number, read in enumerate(READ_STEPS)
    },
    "DisablePollingSource": {"kind": "DisablePollingSource"},
    "DisablePushSource": {"kind": "DisablePushSource", "sourceName": "default"},
    "SetTransform": {
        "kind": "SetTransform",
        "inputs": [{"datasetRef": DATASET_ID, "alias": "a"}, {"datasetRef": "account/name", "alias": ""}],
        "transform": TRANSFORM,
    },
    "SetVocab": {
        "kind": "SetVocab",
        "offsetColumn": "offset",
        "operationTypeColumn": "op",
        "systemTimeColumn": "system_time",
        "eventTimeColumn": "event_time",
    },
    "SetDataSchema raw": {"kind": "SetDataSchema", "schema": "AAECAw=="},
    "SetDataSchema native": {"kind": "SetDataSchema", "schema": DATA_SCHEMA},
    "SetDataSchema both": {"kind": "SetDataSchema", "rawArrowSchema": "AAECAw==", "schema": SMALL_SCHEMA},
    "SetInfo": {"kind": "SetInfo", "description": "Über\n", "keywords": ["a", ""]},
    "SetLicense": {
        "kind": "SetLicense",
        "shortName": "CC0",
        "name": "Creative Commons Zero",
        "spdxId": "CC0-1.0",
        "websiteUrl": "https://example.org",
    },
    "SetAttachments": {
        "kind": "SetAttachments",
        "attachments": {"kind": "Embedded", "items": [{"path": "README.md", "content": "# Read me\n"}]},
    },
}


def a_block(event: Document) -> Document:
    """A block in text."""
    return {"systemTime": "2020-01-01T12:00:00Z", "prevBlockHash": HASH, "sequenceNumber": 7, "event": event}


@cache
def full_blocks() -> dict[str, MetadataBlock]:
    """The events of EVENTS in blocks, by their names."""
    return {
        name: MetadataBlock.model_validate(a_block(event), by_alias=True, by_name=False)
        for name, event in EVENTS.items()
    }


def objects_in(document: Any) -> Iterator[Document]:
    """Every object within a document, itself included, attributes of extra maps left out."""
    if isinstance(document, list):
        for item in document:
            yield from objects_in(item)
    elif isinstance(document, dict):
        yield document
        for name, item in document.items():
            if name != "extra":
                yield from objects_in(item)
