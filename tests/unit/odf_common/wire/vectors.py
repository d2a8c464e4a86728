"""Blocks whose bytes or hashes other implementations have published: what ours must come to, byte for byte."""

from __future__ import annotations

from typing import Any, NamedTuple

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.metadata.base import ExtraAttributes
from odf_common.metadata.data_schema import (
    DataField,
    DataSchema,
    DataTypeDecimal,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    TimeUnit,
)
from odf_common.metadata.events import (
    AddData,
    DatasetKind,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
)
from odf_common.metadata.fragments import DataSlice, OffsetInterval, SourceState
from odf_common.metadata.manifests import MetadataBlock
from odf_common.metadata.sources import (
    CompressionFormat,
    EventTimeSourceFromMetadata,
    FetchStepFilesGlob,
    MergeStrategyLedger,
    PrepStepDecompress,
    ReadStepGeoJson,
    SourceCachingForever,
    SourceOrdering,
)
from odf_common.metadata.transforms import TransformInput, TransformSql
from odf_common.timestamp import Timestamp

NOON = Timestamp.parse("2020-01-01T12:00:00Z")
SEQUENCE_NUMBER = 117


class Vector(NamedTuple):
    """A block, and what it is on the wire."""

    name: str
    manifest_version: int
    block: MetadataBlock
    size: int  # bytes
    sha3: str
    data: bytes | None = None


def mh(text: str) -> Multihash:
    """The hash of a text: stands for that of a file."""
    return sha3_256(text.encode("ascii"))


def a_block(event: MetadataEvent, **changes: Any) -> MetadataBlock:
    """The wrapper that the vectors of version 2 share."""
    parts: dict[str, Any] = {"system_time": NOON, "prev_block_hash": mh("prev"), "sequence_number": SEQUENCE_NUMBER}
    return MetadataBlock(**(parts | {"event": event} | changes))


def _bytes(dump: str) -> bytes:
    """Of a hex dump whose lines begin with their address."""
    return bytes.fromhex("".join(line.split()[1] for line in dump.strip().splitlines()))


A_SLICE = DataSlice(
    logical_hash=mh("logical"),
    physical_hash=mh("physical"),
    offset_interval=OffsetInterval(start=10, end=99),
    size=100,
)

WITH_DATA = AddData(prev_offset=9, new_data=A_SLICE)

WITH_STATE = AddData(
    prev_checkpoint=mh("checkpoint"),
    prev_offset=9,
    new_data=A_SLICE,
    new_source_state=SourceState(source_name="push-source-1", kind="kamu/kafka-offset", value="SOME_OFFSET"),
)

SET_TRANSFORM = SetTransform(
    inputs=(
        TransformInput(
            dataset_ref=DatasetId.parse(
                "did:odf:fed01816ef0a9abe93aba816ef0a9abe93aba90e6065747170300c0d3d30c2cd8d7a4"
            ),
            alias="input1",
        ),
        TransformInput.model_validate({"datasetRef": "input2", "alias": "input2"}),
    ),
    transform=TransformSql(engine="spark", query="SELECT * FROM input1 UNION ALL SELECT * FROM input2"),
)

POLLING_SOURCE = SetPollingSource(
    fetch=FetchStepFilesGlob(
        path="./*.csv",
        event_time=EventTimeSourceFromMetadata(),
        cache=SourceCachingForever(),
        order=SourceOrdering.BY_NAME,
    ),
    prepare=(PrepStepDecompress(format=CompressionFormat.GZIP),),
    read=ReadStepGeoJson(ddl_schema=("a: INT", "b: INT")),
    preprocess=TransformSql(engine="spark", version="1.0.0", query="SELECT * FROM input"),
    merge=MergeStrategyLedger(primary_key=("a",)),
)

VERSION_2 = (
    Vector(
        "1 AddData with no fields",
        2,
        a_block(AddData()),
        160,
        "73e2977b8beae4aef53670067c1173b9d68e69721908d080b84286ab366d1e14",
    ),
    Vector(
        "2 AddData with data",
        2,
        a_block(WITH_DATA),
        320,
        "39426541aa50092a19daa39fd488cf0a6eaace03b2130440922f27916ef74a88",
        _bytes("""
            0000 140000000000000000000a0018000c00080004000a0000001400000002000000
            0020 000040000000000000000000100100001400000000000e002a001a0014000c00
            0040 0b0004000e00000030000000000000017500000000000000c00000000000e407
            0060 000001000000c0a80000000000000a0010000000080004000a00000018000000
            0080 09000000000000000c001800140010000c0004000c0000006400000000000000
            00a0 140000002400000048000000080014000c000400080000006300000000000000
            00c0 0a000000000000002200000016201970ee21101d110c448f2b72aec873f9be2b
            00e0 4e5403a5fdf88e18ca4430d8b1cb00002200000016208aa0c7713491425f3815
            0100 c269391bd101995919065e784e66e01433d47cfc6a6100002200000016209eb9
            0120 49bd8ff0bb1d827f11809aebc6bd0d5955c7f368469a913c70d1966202720000
        """),
    ),
    Vector(
        "3 AddData with data and state",
        2,
        a_block(WITH_STATE),
        464,
        "db5044313bbd596fb54bef9387ad61a18206d1e93e833db4d1159d20cd3cac58",
    ),
    Vector(
        "4 SetTransform",
        2,
        a_block(SET_TRANSFORM),
        432,
        "dc2ab3737792021b6794d3969315bb521701780c91548104f149906d98c8da70",
    ),
    Vector(
        "5 SetPollingSource",
        2,
        a_block(POLLING_SOURCE),
        456,
        "18cc1680b3d36f63358b59d469d76dcbf71ddac3ea66a693ce4158cfc5dfb28d",
    ),
)
"""Of the reference implementation at ODF 0.36."""

SEED = Vector(
    "Seed",
    3,
    MetadataBlock(
        system_time=Timestamp.parse("2026-01-01T00:00:00Z"),
        sequence_number=0,
        event=Seed(
            dataset_id=DatasetId.parse("did:odf:fed012f2c6f610e16861f3307d47eb28899dcd22d790c70a6c737a3e370bbbbdf6efe"),
            dataset_kind=DatasetKind.ROOT,
        ),
    ),
    152,
    "2af3503b42b409ccea7fbe25428b8edfb9e0cc02c9bffed2bf1df5a2a8f6ffe4",
    _bytes("""
        0000 140000000000000000000a0018000c00080004000a0000001400000003000000
        0020 000040000000000000000000680000001400000000000e001e000c0000000000
        0040 0b0004000e0000002000000000000003ea070000010000000000000000000000
        0060 0000060008000400060000000400000022000000ed012f2c6f610e16861f3307
        0080 d47eb28899dcd22d790c70a6c737a3e370bbbbdf6efe0000
    """),
)

NATIVE_SCHEMA = Vector(
    "SetDataSchema with a native schema",
    3,
    MetadataBlock(
        system_time=Timestamp.parse("2026-01-01T00:00:00Z"),
        prev_block_hash=Multihash.parse("f1620190eec75ec95ead7b5dda3170ffcd600e5e7395498c9f462c865d57e2c320715"),
        sequence_number=2,
        event=SetDataSchema(
            schema_=DataSchema(
                fields=(
                    DataField(name="offset", type=DataTypeInt64()),
                    DataField(name="op", type=DataTypeInt32()),
                    DataField(name="system_time", type=DataTypeTimestamp()),
                    DataField(name="event_time", type=DataTypeTimestamp(unit=TimeUnit.MILLISECOND, timezone="UTC")),
                    DataField(
                        name="a",
                        type=DataTypeOption(inner=DataTypeString()),
                        extra=ExtraAttributes.of({"opendatafabric.org/description": "A"}),
                    ),
                    DataField(name="d", type=DataTypeDecimal(precision=5, scale=2)),
                    DataField(name="l", type=DataTypeList(item_type=DataTypeOption(inner=DataTypeInt32()))),
                ),
                extra=ExtraAttributes.of({"example.org/v": 1}),
            ),
        ),
    ),
    632,
    "d430669416e63a2b4986660e9558d3999fb12ee60f82cc87f0259fe420455517",
    _bytes("""
        0000 140000000000000000000a0018000c00080004000a0000001400000003000000
        0020 000040000000000000000000480200001400000000000e002800180014000c00
        0040 0b0004000e0000002c0000000000000a0200000000000000f8010000ea070000
        0060 0100000000000000000000000800080000000400080000000400000070ffffff
        0080 08000000240000003effffff04000000130000007b226578616d706c652e6f72
        00a0 672f76223a317d000700000080010000540100002c010000ec00000078000000
        00c0 3c00000004000000a6feffff0c000000000000112000000054ffffff08000000
        00e0 0000001460ffffff080000000000000bb4feffff010000006c000000dafeffff
        0100 14000000000000041800000008000c0008000400080000000200000005000000
        0120 01000000640000000c00160010000f00080004000c0000001800000050000000
        0140 000000145800000000000600080004000600000004000000260000007b226f70
        0160 656e646174616661627269632e6f72672f6465736372697074696f6e223a2241
        0180 227d000008000c000b0004000800000008000000000000185cffffff01000000
        01a0 6100000082ffffff14000000000000172000000008000c000a00040008000000
        01c0 080000000000010003000000555443000a0000006576656e745f74696d650000
        01e0 beffffff0c0000000000001708000000b4ffffff0b00000073797374656d5f74
        0200 696d6500e2ffffff0c0000000000000b08000000d8ffffff020000006f700000
        0220 00000a0010000c000b0004000a000000100000000000000c0c00000004000400
        0240 04000000060000006f66667365740000220000001620190eec75ec95ead7b5dd
        0260 a3170ffcd600e5e7395498c9f462c865d57e2c3207150000
    """),
)

ADD_DATA = Vector(
    "AddData with a watermark",
    3,
    MetadataBlock(
        system_time=Timestamp.parse("2026-01-02T00:00:00Z"),
        prev_block_hash=Multihash.parse("f1620" + NATIVE_SCHEMA.sha3),
        sequence_number=3,
        event=AddData(
            new_data=DataSlice(
                logical_hash=Multihash.parse(
                    "f9680c001203576798821649f2a6421afd2d5de18a507b8dd2c9263590e8059d5dfc768d7de"
                ),
                physical_hash=Multihash.parse("f1620ea0c2e001b5e51009032280a4b4cef48f74e6f920cea61e7c1e8f2626784c4a8"),
                offset_interval=OffsetInterval(start=0, end=0),
                size=2231,
            ),
            new_watermark=Timestamp.parse("2025-12-31T00:00:00Z"),
        ),
    ),
    320,
    "14502731e4b4c68e307856bb6b97c3206ca071c39e957e2442419c6a56979341",
    _bytes("""
        0000 140000000000000000000a0018000c00080004000a0000001400000003000000
        0020 000040000000000000000000100100001400000000000e002e001c0018000c00
        0040 0b0004000e0000003800000000000001030000000000000000000000bc000000
        0060 ea07000002000000000000000000000000000e00180000000000140000000400
        0080 0e000000e90700006d0100000000000000000000100000000c00180014001000
        00a0 0c0004000c000000b70800000000000010000000100000003400000004000400
        00c0 04000000220000001620ea0c2e001b5e51009032280a4b4cef48f74e6f920cea
        00e0 61e7c1e8f2626784c4a80000250000009680c001203576798821649f2a6421af
        0100 d2d5de18a507b8dd2c9263590e8059d5dfc768d7de000000220000001620d430
        0120 669416e63a2b4986660e9558d3999fb12ee60f82cc87f0259fe4204555170000
    """),
)

VERSION_3 = (SEED, NATIVE_SCHEMA, ADD_DATA)
"""Of the reference implementation in July 2026."""

VECTORS = (*VERSION_2, *VERSION_3)
