from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from odf_common.identity.did import DatasetId
from odf_common.metadata.data_schema import DataField, DataSchema, DataTypeInt64
from odf_common.metadata.events import (
    AddData,
    DisablePollingSource,
    MetadataEvent,
    SetDataSchema,
    UnknownEvent,
)

EVENT: TypeAdapter[Any] = TypeAdapter(MetadataEvent)


def read(document: Any) -> Any:
    return EVENT.validate_python(document, by_alias=True, by_name=False)


class TestKind:
    @pytest.mark.parametrize("odd", [{}, {"kind": None}, {"kind": "Nothing"}, {"kind": 1}, "AddData", None, [], 1])
    def test_an_event_has_one(self, odd: Any) -> None:
        with pytest.raises(ValidationError):
            read(odd)

    def test_an_event_is_not_just_its_kind(self) -> None:
        with pytest.raises(ValidationError):
            read("DisablePollingSource")
        assert read({"kind": "disablePollingSource"}) == DisablePollingSource()

    @pytest.mark.parametrize(
        "event",
        [
            {"kind": "SetTransform", "inputs": [], "transform": {"engine": "spark"}},
            {"kind": "SetAttachments", "attachments": {"items": []}},
        ],
    )
    def test_a_union_of_a_single_member_has_one_too(self, event: Any) -> None:
        with pytest.raises(ValidationError, match="discriminator 'kind'"):
            read(event)

    def test_an_unknown_event_shows_its_number(self) -> None:
        assert UnknownEvent(type_code=14).to_document() == {"kind": "Unknown", "typeCode": 14}


class TestSetDataSchema:
    RAW = SetDataSchema(raw_arrow_schema=b"\0\1\2\3")
    NATIVE = SetDataSchema(schema_=DataSchema(fields=(DataField(name="a", type=DataTypeInt64()),)))
    FIELDS = {"fields": [{"name": "a", "type": {"kind": "Int64"}}]}

    def test_a_buffer_is_called_schema_as_in_0_36(self) -> None:
        document = {"kind": "SetDataSchema", "schema": "AAECAw=="}
        assert read(document) == self.RAW
        assert self.RAW.to_document() == document

    def test_a_buffer_may_be_called_by_its_later_name(self) -> None:
        assert read({"kind": "SetDataSchema", "rawArrowSchema": "AAECAw=="}) == self.RAW

    def test_a_native_schema_is_an_object(self) -> None:
        document = {"kind": "SetDataSchema", "schema": self.FIELDS}
        assert read(document) == self.NATIVE
        assert self.NATIVE.to_document() == document

    def test_both_may_be_given_under_their_later_names(self) -> None:
        document = {"kind": "SetDataSchema", "rawArrowSchema": "AAECAw==", "schema": self.FIELDS}
        both = read(document)
        assert (both.raw_arrow_schema, both.schema_) == (b"\0\1\2\3", self.NATIVE.schema_)
        assert both.to_document() == document

    @pytest.mark.parametrize(
        "document",
        [
            {"schema": "AAECAw==", "rawArrowSchema": None},
            {"rawArrowSchema": None, "schema": "AAECAw=="},
            {"rawArrowSchema": "AAECAw==", "schema": None},
        ],
        ids=str,
    )
    def test_null_beside_a_buffer_is_nothing(self, document: dict[str, Any]) -> None:
        assert read({"kind": "SetDataSchema"} | document) == self.RAW

    @pytest.mark.parametrize(
        "document",
        [
            {},
            {"schema": None},
            {"schema": None, "rawArrowSchema": None},
            {"schema": "AAECAw==", "rawArrowSchema": "AAECAw=="},
            {"schema": ["a BIGINT"]},
            {"rawArrowSchema": {"fields": []}},
            {"raw_arrow_schema": "AAECAw=="},
        ],
        ids=str,
    )
    def test_anything_else_is_refused(self, document: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            read({"kind": "SetDataSchema"} | document)

    @pytest.mark.parametrize(
        "text",
        ["AAECAw", "AAECAw=", "AAECAw===", "AAE CAw==", "AAECAw==\n", "-_8=", "AAECAw==AAEC", "AAECAx==", "=", "é"],
    )
    def test_base64_is_standard_padded_and_canonical(self, text: str) -> None:
        with pytest.raises(ValidationError, match="not standard base64 with padding"):
            read({"kind": "SetDataSchema", "schema": text})

    @pytest.mark.parametrize("data", [b"", b"\xff", b"\xfb\xef", b"\xfb\xef\xbe", bytes(range(256))])
    def test_any_bytes_survive_base64(self, data: bytes) -> None:
        event = SetDataSchema(raw_arrow_schema=data)
        assert read(event.to_document()) == event


def test_a_seed_names_a_dataset() -> None:
    text = "did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6"
    assert read({"kind": "Seed", "datasetId": text, "datasetKind": "root"}).dataset_id == DatasetId.parse(text)
    with pytest.raises(ValidationError):
        read({"kind": "Seed", "datasetId": "some/name", "datasetKind": "Root"})


def test_events_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        AddData().prev_offset = 1  # type: ignore[misc]
