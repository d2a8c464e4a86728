from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from odf_common.metadata.data_schema import DataField
from odf_common.wire._generated.layout import UNIONS


def field(data_type: Any) -> DataField:
    return DataField.model_validate({"name": "a", "type": data_type}, by_alias=True, by_name=False)


WITH_REQUIRED_FIELDS = {"Decimal", "List", "Map", "Option", "Struct"}
KINDS = [member.removeprefix("DataType") for member in UNIONS["DataType"]]


class TestShortForm:
    @pytest.mark.parametrize("kind", sorted(set(KINDS) - WITH_REQUIRED_FIELDS))
    def test_a_type_without_required_fields_may_be_just_its_name(self, kind: str) -> None:
        for spelling in (kind, kind[0].lower() + kind[1:], kind.lower()):
            assert field(spelling) == field({"kind": kind})

    @pytest.mark.parametrize("kind", sorted(WITH_REQUIRED_FIELDS))
    def test_a_type_with_required_fields_is_not_just_its_name(self, kind: str) -> None:
        with pytest.raises(ValidationError, match="Field required"):
            field(kind)

    def test_it_may_stand_wherever_a_type_may(self) -> None:
        option = {"kind": "Option", "inner": {"kind": "Date"}}
        long = {"kind": "Map", "keyType": {"kind": "String"}, "valueType": option}
        short = {"kind": "Map", "keyType": "String", "valueType": {"kind": "Option", "inner": "Date"}}
        assert field(short) == field(long)
        assert field({"kind": "List", "itemType": "Bool"}) == field({"kind": "List", "itemType": {"kind": "Bool"}})

    def test_the_long_form_is_written(self) -> None:
        assert field("timestamp").to_document() == {"name": "a", "type": {"kind": "Timestamp"}}

    @pytest.mark.parametrize("odd", ["", "int", "INT64", "Int64 ", "Int128", 64, None, [], {}])
    def test_what_is_no_type_is_refused(self, odd: Any) -> None:
        with pytest.raises(ValidationError):
            field(odd)


def test_a_type_nested_without_end_is_refused() -> None:
    data_type: Any = "Int64"
    for _ in range(100_000):
        data_type = {"kind": "Option", "inner": data_type}
    with pytest.raises(ValidationError):
        field(data_type)
