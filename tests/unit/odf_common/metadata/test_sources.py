from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from odf_common.metadata.data_schema import DataField, DataSchema, DataTypeInt64
from odf_common.metadata.sources import (
    EventTimeSourceFromMetadata,
    EventTimeSourceFromSystemTime,
    FetchStepUrl,
    MergeStrategy,
    ReadStep,
    ReadStepNdJson,
    SourceCachingForever,
)

READ: TypeAdapter[Any] = TypeAdapter(ReadStep)
MERGE: TypeAdapter[Any] = TypeAdapter(MergeStrategy)


def read(document: Any) -> Any:
    return READ.validate_python(document, by_alias=True, by_name=False)


class TestReadSchema:
    DDL = ReadStepNdJson(ddl_schema=("a BIGINT", "b STRING"))
    NATIVE = ReadStepNdJson(schema_=DataSchema(fields=(DataField(name="a", type=DataTypeInt64()),)))
    FIELDS = {"fields": [{"name": "a", "type": {"kind": "Int64"}}]}

    def test_a_list_is_called_schema_as_in_0_36(self) -> None:
        document = {"kind": "NdJson", "schema": ["a BIGINT", "b STRING"]}
        assert read(document) == self.DDL
        assert self.DDL.to_document() == document

    def test_a_list_may_be_called_by_its_later_name(self) -> None:
        assert read({"kind": "NdJson", "ddlSchema": ["a BIGINT", "b STRING"]}) == self.DDL

    def test_a_native_schema_is_an_object(self) -> None:
        document = {"kind": "NdJson", "schema": self.FIELDS}
        assert read(document) == self.NATIVE
        assert self.NATIVE.to_document() == document

    def test_an_empty_list_is_not_an_absent_one(self) -> None:
        document: dict[str, Any] = {"kind": "NdJson", "schema": []}
        assert read(document) == ReadStepNdJson(ddl_schema=())
        assert read(document).to_document() == document
        assert ReadStepNdJson().to_document() == {"kind": "NdJson"}

    def test_both_are_shown_under_their_later_names(self) -> None:
        """Whether an event may have both is for the chain to say."""
        document = {"kind": "NdJson", "ddlSchema": ["a BIGINT"], "schema": self.FIELDS}
        assert read(document).to_document() == document

    @pytest.mark.parametrize(
        "document",
        [
            {"schema": ["a BIGINT", "b STRING"], "ddlSchema": None},
            {"ddlSchema": None, "schema": ["a BIGINT", "b STRING"]},
            {"ddlSchema": ["a BIGINT", "b STRING"], "schema": None},
        ],
        ids=str,
    )
    def test_null_beside_a_list_is_nothing(self, document: dict[str, Any]) -> None:
        assert read({"kind": "NdJson"} | document) == self.DDL

    @pytest.mark.parametrize(
        "document",
        [
            {"schema": ["a BIGINT"], "ddlSchema": ["a BIGINT"]},
            {"schema": "a BIGINT"},
            {"schema": [1]},
            {"ddlSchema": "a BIGINT"},
            {"ddlSchema": {"fields": []}},
            {"ddl_schema": ["a BIGINT"]},
        ],
        ids=str,
    )
    def test_anything_else_is_refused(self, document: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            read({"kind": "NdJson"} | document)


class TestShortForm:
    def test_event_time_and_caching_may_be_just_a_name(self) -> None:
        document = {"kind": "Url", "url": "x", "eventTime": "fromSystemTime", "cache": "forever"}
        assert FetchStepUrl.model_validate(document, by_alias=True, by_name=False) == FetchStepUrl(
            url="x", event_time=EventTimeSourceFromSystemTime(), cache=SourceCachingForever()
        )

    def test_the_long_form_is_written(self) -> None:
        step = FetchStepUrl(url="x", event_time=EventTimeSourceFromMetadata(), cache=SourceCachingForever())
        assert step.to_document() == {
            "kind": "Url",
            "url": "x",
            "eventTime": {"kind": "FromMetadata"},
            "cache": {"kind": "Forever"},
        }

    def test_a_name_does_not_stand_for_required_fields(self) -> None:
        with pytest.raises(ValidationError, match="Field required"):
            FetchStepUrl.model_validate({"kind": "Url", "url": "x", "eventTime": "FromPath"}, by_alias=True)

    def test_no_other_step_may_be_just_a_name(self) -> None:
        for adapter, name in ((READ, "NdJson"), (MERGE, "Append")):
            assert adapter.validate_python({"kind": name}, by_alias=True, by_name=False)
            with pytest.raises(ValidationError):
                adapter.validate_python(name, by_alias=True, by_name=False)
