from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from flatbuffers import Builder

from odf_common.identity.did import DatasetId
from odf_common.metadata.base import ExtraAttributes
from odf_common.metadata.data_schema import (
    DataField,
    DataSchema,
    DataType,
    DataTypeBinary,
    DataTypeDecimal,
    DataTypeDuration,
    DataTypeInt64,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeString,
    DataTypeTime,
    DataTypeTimestamp,
    TimeUnit,
)
from odf_common.metadata.events import (
    AddData,
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    ExecuteTransform,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetInfo,
    SetPollingSource,
    UnknownEvent,
)
from odf_common.metadata.fragments import Checkpoint, DataSlice, ExecuteTransformInput, OffsetInterval
from odf_common.metadata.sources import (
    CompressionFormat,
    FetchStep,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    MergeStrategyAppend,
    MqttQos,
    MqttTopicSubscription,
    PrepStepDecompress,
    ReadStepCsv,
    ReadStepNdJson,
    SourceOrdering,
)
from odf_common.wire._generated.layout import TABLES, UNIONS
from odf_common.wire.decode import decode_block
from odf_common.wire.encode import NotEncodableError, encode_block
from odf_common.wire.limits import MAX_BLOCK_SIZE, MAX_DEPTH, MAX_ITEMS
from odf_common.wire.reader import BufferReader, Table
from tests.unit.odf_common.wire.raw import Slots, event_block, table
from tests.unit.odf_common.wire.vectors import (
    POLLING_SOURCE,
    SET_TRANSFORM,
    WITH_DATA,
    WITH_STATE,
    a_block,
    mh,
)

AN_ID = DatasetId(bytes(32))


def content_of(event: MetadataEvent, *, version: int = 2, **changes: Any) -> bytes:
    """The inner buffer of a block with this event."""
    data = encode_block(a_block(event, **changes), manifest_version=version)
    content = BufferReader(data).root().bytes(2)
    assert content is not None
    return content


def sets_type(data_type: DataType) -> SetDataSchema:
    return SetDataSchema(schema_=DataSchema(fields=(DataField(name="a", type=data_type),)))


def polls(fetch: FetchStep, *steps: PrepStepDecompress) -> SetPollingSource:
    return SetPollingSource(fetch=fetch, prepare=steps, read=ReadStepNdJson(), merge=MergeStrategyAppend())


def pushes(**options: bool | None) -> AddPushSource:
    return AddPushSource(source_name="", read=ReadStepCsv(**options), merge=MergeStrategyAppend())


class Number(NamedTuple):
    """A number, flag or enum of some table: an event that holds it, and where it lies."""

    event: Callable[[Any], MetadataEvent]
    path: tuple[str, ...]
    """Slots that lead from the block to the table; of a vector the first element."""
    zero: Any = 0
    one: Any = 1


A_TYPE = ("event", "schema", "fields", "type")

OPTIONAL = {
    "AddData.prev_offset": Number(lambda n: AddData(prev_offset=n), ("event",)),
    "ExecuteTransform.prev_offset": Number(lambda n: ExecuteTransform(query_inputs=(), prev_offset=n), ("event",)),
    "ExecuteTransformInput.prev_offset": Number(
        lambda n: ExecuteTransform(query_inputs=(ExecuteTransformInput(dataset_id=AN_ID, prev_offset=n),)),
        ("event", "query_inputs"),
    ),
    "ExecuteTransformInput.new_offset": Number(
        lambda n: ExecuteTransform(query_inputs=(ExecuteTransformInput(dataset_id=AN_ID, new_offset=n),)),
        ("event", "query_inputs"),
    ),
    "ReadStepCsv.header": Number(lambda n: pushes(header=n), ("event", "read"), False, True),
    "ReadStepCsv.infer_schema": Number(lambda n: pushes(infer_schema=n), ("event", "read"), False, True),
    "FetchStepFilesGlob.order": Number(
        lambda n: polls(FetchStepFilesGlob(path="", order=n)),
        ("event", "fetch"),
        SourceOrdering.BY_EVENT_TIME,
        SourceOrdering.BY_NAME,
    ),
    "FetchStepEthereumLogs.chain_id": Number(
        lambda n: polls(FetchStepEthereumLogs(chain_id=n)),
        ("event", "fetch"),
    ),
    "MqttTopicSubscription.qos": Number(
        lambda n: polls(FetchStepMqtt(host="", port=1, topics=(MqttTopicSubscription(path="", qos=n),))),
        ("event", "fetch", "topics"),
        MqttQos.AT_MOST_ONCE,
        MqttQos.AT_LEAST_ONCE,
    ),
    "DataTypeBinary.fixed_length": Number(lambda n: sets_type(DataTypeBinary(fixed_length=n)), A_TYPE),
    "DataTypeList.fixed_length": Number(
        lambda n: sets_type(DataTypeList(item_type=DataTypeString(), fixed_length=n)), A_TYPE
    ),
    "DataTypeMap.keys_sorted": Number(
        lambda n: sets_type(DataTypeMap(key_type=DataTypeString(), value_type=DataTypeString(), keys_sorted=n)),
        A_TYPE,
        False,
        True,
    ),
    "DataTypeDuration.unit": Number(
        lambda n: sets_type(DataTypeDuration(unit=n)), A_TYPE, TimeUnit.SECOND, TimeUnit.MILLISECOND
    ),
    "DataTypeTime.unit": Number(
        lambda n: sets_type(DataTypeTime(unit=n)), A_TYPE, TimeUnit.SECOND, TimeUnit.MILLISECOND
    ),
    "DataTypeTimestamp.unit": Number(
        lambda n: sets_type(DataTypeTimestamp(unit=n)), A_TYPE, TimeUnit.SECOND, TimeUnit.MILLISECOND
    ),
}


def adds(*, start: int = 1, end: int = 1, size: int = 1) -> AddData:
    interval = OffsetInterval(start=start, end=end)
    return AddData(new_data=DataSlice(logical_hash=mh("a"), physical_hash=mh("b"), offset_interval=interval, size=size))


PLAIN = {
    "OffsetInterval.start": Number(lambda n: adds(start=n), ("event", "new_data", "offset_interval")),
    "OffsetInterval.end": Number(lambda n: adds(end=n), ("event", "new_data", "offset_interval")),
    "DataSlice.size": Number(lambda n: adds(size=n), ("event", "new_data")),
    "Checkpoint.size": Number(
        lambda n: AddData(new_checkpoint=Checkpoint(physical_hash=mh("a"), size=n)), ("event", "new_checkpoint")
    ),
    "Seed.dataset_kind": Number(
        lambda n: Seed(dataset_id=AN_ID, dataset_kind=n), ("event",), DatasetKind.ROOT, DatasetKind.DERIVATIVE
    ),
    "FetchStepMqtt.port": Number(lambda n: polls(FetchStepMqtt(host="", port=n, topics=())), ("event", "fetch")),
    "PrepStepDecompress.format": Number(
        lambda n: polls(FetchStepEthereumLogs(), PrepStepDecompress(format=n)),
        ("event", "prepare", "value"),
        CompressionFormat.GZIP,
        CompressionFormat.ZIP,
    ),
    "DataTypeDecimal.precision": Number(lambda n: sets_type(DataTypeDecimal(precision=n, scale=1)), A_TYPE),
    "DataTypeDecimal.scale": Number(lambda n: sets_type(DataTypeDecimal(precision=1, scale=n)), A_TYPE),
}

NUMBERS = {"bool", "short", "int", "uint", "long", "ulong", "enum"}


def has_slot(content: bytes, path: tuple[str, ...], attribute: str) -> bool:
    """Whether the table at the end of the path holds something in the slot of this name."""
    name, found = "MetadataBlock", BufferReader(content).root()
    for step in path:
        name, found = _follow(name, found, step)
    index = next(slot.index for slot in TABLES[name] if slot.name == attribute)
    return index in found.present_beyond(0)


def _follow(name: str, found: Table, step: str) -> tuple[str, Table]:
    slot = next(slot for slot in TABLES[name] if slot.name == step)
    if slot.kind == "union":
        member = UNIONS[slot.of][found.scalar(slot.index, "ubyte") - 1]
        child = found.table(slot.index + 1)
    else:
        member = slot.of
        elements = found.tables(slot.index) if slot.vector else None
        child = next(elements) if elements is not None else found.table(slot.index)
    assert child is not None
    return member, child


class TestAbsentAndDefault:
    def test_these_are_all_numbers_of_the_schema(self) -> None:
        def named(*, optional: bool) -> set[str]:
            slots = ((name, slot) for name, table in TABLES.items() if name != "Manifest" for slot in table)
            return {f"{name}.{s.name}" for name, s in slots if s.kind in NUMBERS and s.optional == optional}

        assert set(OPTIONAL) == named(optional=True)
        assert {*PLAIN, "MetadataBlock.sequence_number"} == named(optional=False)

    @pytest.mark.parametrize("name", OPTIONAL)
    def test_an_optional_number_is_written_whenever_present_even_0(self, name: str) -> None:
        number, attribute = OPTIONAL[name], name.split(".")[1]
        for value, expected in ((None, False), (number.zero, True), (number.one, True)):
            event = number.event(value)
            assert has_slot(content_of(event), number.path, attribute) == expected
            assert decode_block(encode_block(a_block(event))).block.event == event

    @pytest.mark.parametrize("name", PLAIN)
    def test_another_number_is_left_out_when_it_is_0(self, name: str) -> None:
        number, attribute = PLAIN[name], name.split(".")[1]
        for value, expected in ((number.zero, False), (number.one, True)):
            event = number.event(value)
            assert has_slot(content_of(event), number.path, attribute) == expected
            assert decode_block(encode_block(a_block(event))).block.event == event

    def test_sequence_number_0_is_left_out(self) -> None:
        assert not has_slot(content_of(DisablePollingSource(), sequence_number=0), (), "sequence_number")
        assert has_slot(content_of(DisablePollingSource(), sequence_number=1), (), "sequence_number")

    def test_an_empty_text_or_list_is_written_and_differs_from_an_absent_one(self) -> None:
        for event, present in ((SetInfo(), False), (SetInfo(description="", keywords=()), True)):
            content = content_of(event)
            assert has_slot(content, ("event",), "description") == present
            assert has_slot(content, ("event",), "keywords") == present
            assert decode_block(encode_block(a_block(event))).block.event == event


class TestTimestamps:
    """Version 2 writes the struct where it falls, version 3 at a multiple of 4."""

    NOON = struct.pack("<iHxxII", 2020, 1, 43_200, 0)

    @pytest.mark.parametrize(
        "event",
        [
            SET_TRANSFORM,
            SetDataSchema(raw_arrow_schema=b"schema"),
            WITH_DATA,
            POLLING_SOURCE,
            Seed(dataset_id=AN_ID, dataset_kind=DatasetKind.ROOT),
        ],
        ids=lambda event: event.kind,
    )
    def test_the_versions_differ_behind_a_vtable_that_ends_within_a_word(self, event: MetadataEvent) -> None:
        unaligned, aligned = content_of(event, version=2), content_of(event, version=3)
        assert unaligned.index(self.NOON) % 4 == 2
        assert aligned.index(self.NOON) % 4 == 0

    @pytest.mark.parametrize(
        "event",
        [
            AddData(),
            WITH_STATE,
            SetInfo(description="", keywords=()),
            Seed(dataset_id=AN_ID, dataset_kind=DatasetKind.DERIVATIVE),
        ],
        ids=lambda event: event.kind,
    )
    def test_the_versions_agree_behind_a_vtable_that_ends_with_a_word(self, event: MetadataEvent) -> None:
        assert content_of(event, version=2) == content_of(event, version=3)


class TestTexts:
    def test_every_occurrence_of_a_text_is_written(self) -> None:
        assert content_of(SetInfo(keywords=("same", "same"))).count(b"same") == 2

    def test_extra_attributes_keep_the_spelling_in_which_they_came(self) -> None:
        entries = '{"b": 1, "a": [ ]}'

        def slots(builder: Builder) -> Slots:
            return {6: table(builder, {0: int(builder.CreateString(entries))})}

        block = decode_block(event_block("AddData", slots)).block
        assert isinstance(block.event, AddData)
        assert entries.encode() in encode_block(block)
        assert block.event.extra == ExtraAttributes.of({"a": [], "b": 1})


class TestRefusals:
    def test_an_event_of_a_later_version_is_not_written(self) -> None:
        with pytest.raises(NotEncodableError, match="event type 14 is of a later version"):
            encode_block(a_block(UnknownEvent(type_code=14)))

    @pytest.mark.parametrize("version", [0, 1, 4])
    def test_no_other_version_is_written(self, version: int) -> None:
        with pytest.raises(NotEncodableError, match=f"manifest version {version}"):
            encode_block(a_block(AddData()), manifest_version=version)


class TestLimits:
    """What is written can be read again, so the limits of reading are also those of writing."""

    def nested(self, options: int) -> SetDataSchema:
        data_type: DataType = DataTypeInt64()
        for _ in range(options):
            data_type = DataTypeOption(inner=data_type)
        return sets_type(data_type)

    def test_depth(self) -> None:
        around = len(("block", "event", "schema", "field", "innermost"))
        deepest = a_block(self.nested(MAX_DEPTH - around))
        assert decode_block(encode_block(deepest)).block == deepest
        with pytest.raises(NotEncodableError, match="deeper"):
            encode_block(a_block(self.nested(MAX_DEPTH - around + 1)))

    def test_number_of_parts(self) -> None:
        around = len(("block", "event"))
        fullest = a_block(SetInfo(keywords=("",) * (MAX_ITEMS - around)))
        assert decode_block(encode_block(fullest)).block == fullest
        with pytest.raises(NotEncodableError, match="parts"):
            encode_block(a_block(SetInfo(keywords=("",) * (MAX_ITEMS - around + 1))))

    def test_a_schema_of_ten_thousand_nullable_columns_fits(self) -> None:
        column = DataTypeOption(inner=DataTypeString())
        fields = tuple(DataField(name=str(number), type=column) for number in range(10_000))
        block = a_block(SetDataSchema(schema_=DataSchema(fields=fields)))
        assert decode_block(encode_block(block)).block == block

    def test_size(self) -> None:
        around = len(encode_block(a_block(SetInfo(description=""))))
        largest = a_block(SetInfo(description="x" * (MAX_BLOCK_SIZE - around)))
        data = encode_block(largest)
        assert decode_block(data).block == largest
        with pytest.raises(NotEncodableError, match="bytes"):
            encode_block(a_block(SetInfo(description="x" * MAX_BLOCK_SIZE)))
