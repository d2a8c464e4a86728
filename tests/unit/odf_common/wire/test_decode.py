from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from flatbuffers import Builder
from hypothesis import given

from odf_common.errors import MalformedBytesError
from odf_common.identity.multihash import sha3_256
from odf_common.metadata.base import ExtraAttributes, Model
from odf_common.metadata.events import AddData, SetDataSchema, SetInfo, UnknownEvent
from odf_common.metadata.fragments import DataSlice, OffsetInterval
from odf_common.metadata.manifests import MetadataBlock
from odf_common.wire.decode import (
    decode_block,
)
from odf_common.wire.encode import encode_block
from odf_common.wire.envelope import ObsoleteVersionError, UnsupportedVersionError, open_envelope, prev_block_hash
from odf_common.wire.limits import MAX_BLOCK_SIZE
from odf_common.wire.plan import PLANS
from odf_common.wire.reader import BufferReader
from tests.strategies import blocks, event_models, examples, models
from tests.unit.odf_common.metadata.documents import full_blocks
from tests.unit.odf_common.wire.raw import (
    Slots,
    block,
    event_block,
    event_number,
    finished,
    i16,
    manifest,
    moment,
    schema_block,
    table,
    u8,
    u64,
    vector,
)
from tests.unit.odf_common.wire.vectors import NOON, SEED, VECTORS, VERSION_2, Vector

NOTHING = sha3_256(b"")


def content_of(data: bytes) -> bytes:
    content = BufferReader(data).root().bytes(2)
    assert content is not None
    return content


class TestEnvelope:
    def test_another_multicodec_is_not_a_block(self) -> None:
        with pytest.raises(MalformedBytesError, match="0x400001"):
            decode_block(manifest(content_of(SEED.data or b""), kind=0x400001))

    @pytest.mark.parametrize("version", [1, 0, -1])
    def test_a_version_before_2_is_obsolete(self, version: int) -> None:
        with pytest.raises(ObsoleteVersionError) as error:
            decode_block(manifest(b"", version=version))
        assert str(error.value) == (
            f"Obsolete version: manifest has version {version} while minimum supported version is 2"
        )

    @pytest.mark.parametrize("version", [4, 5, 2**31 - 1])
    def test_a_version_after_3_is_unsupported(self, version: int) -> None:
        with pytest.raises(UnsupportedVersionError) as error:
            decode_block(manifest(b"", version=version))
        assert str(error.value) == (
            f"Unsupported version: manifest has version {version} while maximum supported version is 3"
        )

    @pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
    def test_the_version_is_that_of_the_single_block(self, vector: Vector) -> None:
        data = encode_block(vector.block, manifest_version=vector.manifest_version)
        assert open_envelope(data).version == vector.manifest_version

    def test_a_manifest_without_content_is_not_a_block(self) -> None:
        with pytest.raises(MalformedBytesError, match="no content"):
            decode_block(manifest(None))

    def test_nothing_larger_than_the_limit_is_looked_at(self) -> None:
        for read in (decode_block, open_envelope, prev_block_hash):
            with pytest.raises(MalformedBytesError, match="larger"):
                read(b"\0" * (MAX_BLOCK_SIZE + 1))


class TestReceivedBytes:
    def test_they_are_kept_and_hashed_as_they_are(self) -> None:
        # The same block as SEED, written by a builder that arranges it otherwise.
        content = content_of(SEED.data or b"")
        data = manifest(content, version=3) + b"\0" * 4
        encoded = decode_block(data)
        assert encoded.block == SEED.block
        assert encoded.data is data
        assert encoded.hash.digest == hashlib.sha3_256(data).digest()
        assert encoded.hash.digest.hex() != SEED.sha3


@pytest.mark.parametrize("event", event_models(), ids=lambda event: event.__name__)
@pytest.mark.parametrize("version", [2, 3])
def test_a_block_survives_its_bytes(event: type[Model], version: int) -> None:
    @examples(20)
    @given(blocks(models(event)))
    def survives(written: MetadataBlock) -> None:
        encoded = decode_block(encode_block(written, manifest_version=version))
        assert encoded.block == written
        assert encoded.manifest_version == version
        assert encoded.unknown == ()

    survives()


class TestAlignment:
    @pytest.mark.parametrize("vector", VERSION_2, ids=lambda vector: vector.name)
    def test_version_2_may_hold_aligned_timestamps(self, vector: Vector) -> None:
        aligned = manifest(content_of(encode_block(vector.block, manifest_version=3)), version=2)
        assert decode_block(aligned).block == vector.block

    @pytest.mark.parametrize("vector", VERSION_2, ids=lambda vector: vector.name)
    def test_version_3_may_hold_unaligned_timestamps(self, vector: Vector) -> None:
        unaligned = manifest(content_of(encode_block(vector.block, manifest_version=2)), version=3)
        assert decode_block(unaligned).block == vector.block


class TestLaterVersions:
    """What a later version adds is named in `unknown`; the block around it is still read."""

    def test_an_event_of_a_later_version_is_unknown(self) -> None:
        encoded = decode_block(block(u8(14), lambda builder: table(builder, {0: u64(7)})))
        assert encoded.block.event == UnknownEvent(type_code=14)
        assert encoded.block.system_time == NOON
        assert encoded.unknown == ("MetadataBlock.event: unknown MetadataEvent 14",)

    def test_an_event_of_a_later_version_need_not_be_a_table(self) -> None:
        encoded = decode_block(block(u8(255), lambda builder: int(builder.CreateString("?" * 99))))
        assert encoded.block.event == UnknownEvent(type_code=255)

    def test_an_unknown_union_member_makes_the_event_unknown(self) -> None:
        encoded = decode_block(schema_block(u8(25), lambda builder: table(builder, {})))
        assert encoded.block.event == UnknownEvent(type_code=10)
        assert encoded.unknown == ("DataField.type: unknown DataType 25",)

    def test_an_unknown_member_of_an_optional_union_makes_the_event_unknown(self) -> None:
        def slots(builder: Builder) -> Slots:
            name, nothing = int(builder.CreateString("x")), table(builder, {})
            return {0: name, 1: u8(3), 2: nothing, 3: u8(2), 4: nothing, 5: u8(1), 6: nothing}

        encoded = decode_block(event_block("AddPushSource", slots))
        assert encoded.block.event == UnknownEvent(type_code=11)

    def test_an_unknown_enum_value_makes_the_event_unknown(self) -> None:
        encoded = decode_block(schema_block(u8(22), lambda builder: table(builder, {0: i16(4)})))
        assert encoded.block.event == UnknownEvent(type_code=10)
        assert encoded.unknown == ("DataTypeTime.unit: unknown TimeUnit 4",)

    def test_a_negative_enum_value_is_unknown(self) -> None:
        encoded = decode_block(schema_block(u8(22), lambda builder: table(builder, {0: i16(-1)})))
        assert encoded.unknown == ("DataTypeTime.unit: unknown TimeUnit -1",)

    def test_fields_behind_the_known_ones_are_named_and_left(self) -> None:
        encoded = decode_block(event_block("SetInfo", lambda builder: {2: u8(1), 5: u64(1)}))
        assert encoded.block.event == SetInfo()
        assert encoded.unknown == ("SetInfo: unknown field in slot 2", "SetInfo: unknown field in slot 5")

    def test_fields_behind_those_of_the_block_are_named_and_left(self) -> None:
        data = block(event_number("SetInfo"), lambda builder: table(builder, {}), more={5: u8(1)})
        assert decode_block(data).unknown == ("MetadataBlock: unknown field in slot 5",)

    def test_fields_behind_those_of_the_manifest_are_named_and_left(self) -> None:
        encoded = decode_block(manifest(content_of(SEED.data or b""), more={4: u8(1)}))
        assert encoded.block == SEED.block
        assert encoded.unknown == ("Manifest: unknown field in slot 4",)

    def test_what_is_unknown_in_many_places_is_named_once(self) -> None:
        def slots(builder: Builder) -> Slots:
            kind, name = table(builder, {}), int(builder.CreateString("a"))
            fields = [table(builder, {0: name, 1: u8(2), 2: kind, 4: u8(1)}) for _ in range(9)]
            return {1: table(builder, {0: vector(builder, fields)})}

        encoded = decode_block(event_block("SetDataSchema", slots))
        assert isinstance(encoded.block.event, SetDataSchema)
        assert encoded.unknown == ("DataField: unknown field in slot 4",)


def without_one_part(value: Any) -> Iterator[tuple[str, Any]]:
    """Each required part that has a slot of its own, and the value with just this one absent."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            for place, broken in without_one_part(item):
                yield f"{index}.{place}", (*value[:index], broken, *value[index + 1 :])
    elif isinstance(value, Model):
        plan = PLANS[type(value).__name__]
        for attribute, slot in ((p.attribute, p.slot) for p in plan.slots):
            if attribute in plan.required and slot.kind in POINTERS:
                yield attribute, value.model_copy(update={attribute: None})
            for place, broken in without_one_part(getattr(value, attribute)):
                yield f"{attribute}.{place}", value.model_copy(update={attribute: broken})


POINTERS = {"string", "bytes", "table", "union", "timestamp"}
"""What can be absent: numbers and enums that are not optional are 0 then."""


class TestRequiredFields:
    @pytest.mark.parametrize("name", full_blocks())
    def test_a_block_in_which_one_is_absent_is_malformed(self, name: str) -> None:
        for place, broken in without_one_part(full_blocks()[name]):
            with pytest.raises(MalformedBytesError, match=f"absent, but required: {place.split('.')[-1]}"):
                decode_block(encode_block(broken))

    @pytest.mark.parametrize(
        ("event", "absent"),
        [
            ("Seed", "dataset_id"),
            ("ExecuteTransform", "query_inputs"),
            ("SetPollingSource", "fetch, merge, read"),
            ("AddPushSource", "merge, read, source_name"),
            ("DisablePushSource", "source_name"),
            ("SetTransform", "inputs, transform"),
            ("SetLicense", "name, short_name, website_url"),
            ("SetAttachments", "attachments"),
        ],
    )
    def test_all_that_are_absent_are_named(self, event: str, absent: str) -> None:
        with pytest.raises(MalformedBytesError, match=f"^{event}: absent, but required: {absent}$"):
            decode_block(event_block(event))

    def test_a_data_schema_event_has_one_of_the_two_schemas(self) -> None:
        with pytest.raises(MalformedBytesError, match="needs a schema"):
            decode_block(event_block("SetDataSchema"))

    def test_extra_attributes_have_entries(self) -> None:
        with pytest.raises(MalformedBytesError, match="ExtraAttributes: absent, but required: entries"):
            decode_block(event_block("AddData", lambda builder: {6: table(builder, {})}))

    def test_a_wrapped_step_is_there(self) -> None:
        def slots(builder: Builder) -> Slots:
            steps, nothing = vector(builder, [table(builder, {})]), table(builder, {})
            return {0: u8(5), 1: nothing, 2: steps, 3: u8(2), 4: nothing, 7: u8(1), 8: nothing}

        with pytest.raises(MalformedBytesError, match="PrepStepWrapper: absent, but required: value"):
            decode_block(event_block("SetPollingSource", slots))

    def test_a_union_has_both_its_type_and_its_value(self) -> None:
        for slots in ({0: moment(), 3: u8(13)}, {0: moment(), 3: u8(0)}):
            content = finished(lambda builder, slots=slots: table(builder, slots))  # type: ignore[misc]
            with pytest.raises(MalformedBytesError, match=r"MetadataBlock"):
                decode_block(manifest(content))

    def test_a_union_value_without_type_is_malformed(self) -> None:
        with pytest.raises(MalformedBytesError, match="a union needs both its type and its value"):
            decode_block(block(u8(0), lambda builder: table(builder, {})))


class TestAbsentNumbers:
    """Numbers and enums that are not optional are left out when they are 0, and read as 0 when they are left out."""

    def test_an_absent_sequence_number_is_0(self) -> None:
        data = block(event_number("DisablePollingSource"), lambda builder: table(builder, {}))
        assert decode_block(data).block.sequence_number == 0

    def test_an_absent_offset_is_0(self) -> None:
        def slots(builder: Builder) -> Slots:
            digest = int(builder.CreateByteVector(NOTHING.to_bytes()))
            return {2: table(builder, {0: digest, 1: digest, 2: table(builder, {})})}

        assert decode_block(event_block("AddData", slots)).block.event == AddData(
            new_data=DataSlice(
                logical_hash=NOTHING, physical_hash=NOTHING, offset_interval=OffsetInterval(start=0, end=0), size=0
            )
        )

    def test_an_absent_optional_number_is_absent(self) -> None:
        assert decode_block(event_block("AddData")).block.event == AddData()


class TestTimes:
    @pytest.mark.parametrize(
        ("year", "day", "second", "nanosecond"),
        [
            (0, 1, 0, 0),
            (-1, 1, 0, 0),
            (10_000, 1, 0, 0),
            (2**31 - 1, 1, 0, 0),
            (-(2**31), 1, 0, 0),
            (2020, 0, 0, 0),
            (2020, 367, 0, 0),
            (2021, 366, 0, 0),
            (2020, 65_535, 0, 0),
            (2020, 1, 86_400, 0),
            (2020, 1, 2**32 - 1, 0),
            (2020, 1, 0, 10**9),
            (2020, 1, 0, 2**32 - 1),
        ],
    )
    def test_a_time_that_does_not_exist_is_malformed(self, year: int, day: int, second: int, nanosecond: int) -> None:
        time = moment(year, day, second, nanosecond)
        with pytest.raises(MalformedBytesError, match="of a timestamp"):
            decode_block(event_block("AddData", lambda builder: {4: time}))

    @pytest.mark.parametrize(
        ("parts", "text"),
        [
            ((1, 1, 0, 0), "0001-01-01T00:00:00Z"),
            ((1969, 365, 86_399, 999_999_999), "1969-12-31T23:59:59.999999999Z"),
            ((2020, 366, 0, 0), "2020-12-31T00:00:00Z"),
            ((9999, 365, 86_399, 999_999_999), "9999-12-31T23:59:59.999999999Z"),
        ],
    )
    def test_days_are_counted_from_1_within_the_year(self, parts: tuple[int, int, int, int], text: str) -> None:
        event = decode_block(event_block("AddData", lambda builder: {4: moment(*parts)})).block.event
        assert isinstance(event, AddData)
        assert str(event.new_watermark) == text


class TestTexts:
    def test_a_text_that_is_not_utf8_is_malformed(self) -> None:
        with pytest.raises(MalformedBytesError, match="is not UTF-8"):
            decode_block(event_block("SetInfo", lambda builder: {0: int(builder.CreateString(b"\xff"))}))

    def test_a_lone_surrogate_is_malformed(self) -> None:
        with pytest.raises(MalformedBytesError, match="is not UTF-8"):
            decode_block(event_block("SetInfo", lambda builder: {0: int(builder.CreateString(b"\xed\xa0\x80"))}))

    def test_a_dataset_reference_is_an_id_or_an_alias(self) -> None:
        def slots(builder: Builder) -> Slots:
            source = table(builder, {0: int(builder.CreateString("no_name"))})
            transform = table(builder, {0: int(builder.CreateString("spark"))})
            return {0: vector(builder, [source]), 1: u8(1), 2: transform}

        with pytest.raises(MalformedBytesError, match=r"TransformInput\.dataset_ref: .*no_name"):
            decode_block(event_block("SetTransform", slots))

    def test_a_hash_ends_with_its_digest(self) -> None:
        data = NOTHING.to_bytes() + b"!"
        with pytest.raises(MalformedBytesError, match=r"AddData\.prev_checkpoint: .*not a valid multihash"):
            decode_block(event_block("AddData", lambda builder: {0: int(builder.CreateByteVector(data))}))


class TestExtraAttributes:
    def extra(self, entries: str) -> ExtraAttributes | None:
        def slots(builder: Builder) -> Slots:
            return {6: table(builder, {0: int(builder.CreateString(entries))})}

        event = decode_block(event_block("AddData", slots)).block.event
        assert isinstance(event, AddData)
        json.dumps(event.to_document(), allow_nan=False, ensure_ascii=False).encode("utf-8")
        return event.extra

    @pytest.mark.parametrize(
        ("entries", "attributes"),
        [
            ("{}", {}),
            (' { "b" : 1, "a": [ 2 ] } ', {"b": 1, "a": [2]}),
            (r'{"\u00fc\ud83d\ude00": "\n"}', {"ü😀": "\n"}),
            ('{"a": 1, "a": 2}', {"a": 2}),
            ('{"a": 1E2, "b": -0.0, "c": 1e-999}', {"a": 100.0, "b": 0.0, "c": 0.0}),
            ('{"a": ' + "9" * 4000 + "}", {"a": 10**4000 - 1}),
        ],
    )
    def test_any_spelling_of_an_object_is_read_and_kept(self, entries: str, attributes: dict[str, Any]) -> None:
        extra = self.extra(entries)
        assert extra is not None
        assert extra.entries == entries
        assert extra.attributes == attributes

    @pytest.mark.parametrize(
        "entries",
        [
            "",
            "[]",
            "null",
            "1",
            '"{}"',
            "{",
            "{} {}",
            "{'a': 1}",
            '{"a": NaN}',
            '{"a": -Infinity}',
            '{"a": 1e999}',
            '{"a": ' + "9" * 5000 + "}",
            r'{"a": "\ud800"}',
            r'{"\uDFFF": 1}',
            '{"a": ' * 65 + "1" + "}" * 65,
            '{"a": ' + "[" * 64 + "]" * 64 + "}",
            '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
            '{"a":' * 100_000,
            "\ufeff{}",
        ],
        ids=lambda entries: entries[:20],
    )
    def test_what_is_not_a_json_object_is_malformed(self, entries: str) -> None:
        with pytest.raises(MalformedBytesError, match=r"^ExtraAttributes: "):
            self.extra(entries)
