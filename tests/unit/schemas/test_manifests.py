"""The JSON Schemas of manifests take what we write, and refuse what we refuse."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from odf_common.metadata.base import Model
from odf_common.metadata.manifests import MANIFEST_MODELS, MetadataBlockManifest, MetadataEventManifest
from schemas.codegen import MANIFESTS
from tests.strategies import event_models, examples, models
from tests.unit.odf_common.metadata.documents import EVENTS, Document, a_block, objects_in

A_FEW = (
    *("Seed root", "AddData", "ExecuteTransform", "SetPollingSource 0 Url", "AddPushSource 0 Csv"),
    *("SetTransform", "SetDataSchema both", "SetAttachments"),
)
"""Events that show every way in which objects contain each other, in reasonable time."""


@cache
def validator(model: type[Model]) -> Any:
    return Draft202012Validator(json.loads((MANIFESTS / f"{model.__name__}.schema.json").read_text()))


def manifest(event: Document) -> Document:
    return {"kind": "MetadataEvent", "version": 1, "content": event}


@pytest.mark.parametrize("model", MANIFEST_MODELS)
def test_they_are_json_schemas(model: type[Model]) -> None:
    Draft202012Validator.check_schema(validator(model).schema)


@pytest.mark.parametrize("name", EVENTS)
def test_they_take_every_property(name: str) -> None:
    validator(MetadataEventManifest).validate(manifest(EVENTS[name]))
    block = {"kind": "MetadataBlock", "version": 3, "content": a_block(EVENTS[name])}
    validator(MetadataBlockManifest).validate(block)


@pytest.mark.parametrize("event", event_models(), ids=lambda event: event.__name__)
def test_they_take_whatever_is_written(event: type[Model]) -> None:
    @examples(8)
    @given(models(event))
    def takes(written: Model) -> None:
        validator(MetadataEventManifest).validate(manifest(written.to_document()))

    takes()


@pytest.mark.parametrize("model", MANIFEST_MODELS)
def test_they_take_any_manifest(model: type[Model]) -> None:
    @examples(8)
    @given(models(model))
    def takes(written: Model) -> None:
        validator(model).validate(written.to_document())

    takes()


@pytest.mark.parametrize("name", A_FEW)
def test_they_refuse_unknown_properties_in_every_object(name: str) -> None:
    for index, _ in enumerate(objects_in(EVENTS[name])):
        event = copy.deepcopy(EVENTS[name])
        list(objects_in(event))[index]["unknown"] = 1
        assert not validator(MetadataEventManifest).is_valid(manifest(event))


@pytest.mark.parametrize("name", A_FEW)
def test_they_refuse_a_union_without_its_kind(name: str) -> None:
    for index, original in enumerate(objects_in(EVENTS[name])):
        if "kind" in original:
            event = copy.deepcopy(EVENTS[name])
            del list(objects_in(event))[index]["kind"]
            assert not validator(MetadataEventManifest).is_valid(manifest(event))


@pytest.mark.parametrize("absent", ["kind", "version", "content"])
def test_a_manifest_has_all_three_keys(absent: str) -> None:
    whole = manifest({"kind": "SetInfo"})
    assert validator(MetadataEventManifest).is_valid(whole)
    assert not validator(MetadataEventManifest).is_valid({key: whole[key] for key in whole if key != absent})


@pytest.mark.parametrize("version", [0, 1, 4, "2", True])
def test_a_block_is_of_a_version_that_is_read(version: Any) -> None:
    block = {"kind": "MetadataBlock", "version": version, "content": a_block({"kind": "SetInfo"})}
    assert not validator(MetadataBlockManifest).is_valid(block)
