"""Rules of the text form that hold for every object, tried on every property of every event."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from odf_common.metadata.base import Model
from odf_common.metadata.fragments import DatasetVocabulary, Watermark
from odf_common.metadata.manifests import DatasetSnapshot, MetadataBlock
from odf_common.wire.plan import PLANS
from tests.strategies import reachable
from tests.unit.odf_common.metadata.documents import EVENTS, HASH, Document, a_block, full_blocks

FIELDS = {
    "MetadataBlock": "systemTime* prevBlockHash sequenceNumber* event*",
    "Seed": "datasetId* datasetKind*",
    "AddData": "prevCheckpoint prevOffset newData newCheckpoint newWatermark newSourceState extra",
    "ExecuteTransform": "queryInputs* prevCheckpoint prevOffset newData newCheckpoint newWatermark",
    "SetPollingSource": "fetch* prepare read* preprocess merge*",
    "AddPushSource": "sourceName* read* preprocess merge*",
    "DisablePollingSource": "",
    "DisablePushSource": "sourceName*",
    "SetTransform": "inputs* transform*",
    "SetVocab": "offsetColumn operationTypeColumn systemTimeColumn eventTimeColumn",
    "SetDataSchema": "rawArrowSchema schema",
    "SetInfo": "description keywords",
    "SetLicense": "shortName* name* spdxId websiteUrl*",
    "SetAttachments": "attachments*",
    "AttachmentsEmbedded": "items*",
    "AttachmentEmbedded": "path* content*",
    "DataSlice": "logicalHash* physicalHash* offsetInterval* size*",
    "OffsetInterval": "start* end*",
    "Checkpoint": "physicalHash* size*",
    "SourceState": "sourceName* kind* value*",
    "ExecuteTransformInput": "datasetId* prevBlockHash newBlockHash prevOffset newOffset",
    "TransformInput": "datasetRef* alias",
    "TransformSql": "engine* version query queries temporalTables",
    "SqlQueryStep": "alias query*",
    "TemporalTable": "name* primaryKey*",
    "MergeStrategyAppend": "",
    "MergeStrategyLedger": "primaryKey*",
    "MergeStrategySnapshot": "primaryKey* compareColumns",
    "MergeStrategyChangelogStream": "primaryKey*",
    "MergeStrategyUpsertStream": "primaryKey*",
    "ReadStepCsv": "ddlSchema schema separator encoding quote escape header inferSchema nullValue dateFormat "
    "timestampFormat",
    "ReadStepJson": "subPath ddlSchema schema dateFormat encoding timestampFormat",
    "ReadStepNdJson": "ddlSchema schema dateFormat encoding timestampFormat",
    "ReadStepGeoJson": "ddlSchema schema",
    "ReadStepNdGeoJson": "ddlSchema schema",
    "ReadStepParquet": "ddlSchema schema",
    "ReadStepEsriShapefile": "ddlSchema schema subPath",
    "FetchStepUrl": "url* eventTime cache headers",
    "FetchStepFilesGlob": "path* eventTime cache order",
    "FetchStepContainer": "image* command args env",
    "FetchStepMqtt": "host* port* username password topics*",
    "FetchStepEthereumLogs": "chainId nodeUrl filter signature",
    "RequestHeader": "name* value*",
    "EnvVar": "name* value",
    "MqttTopicSubscription": "path* qos",
    "EventTimeSourceFromMetadata": "",
    "EventTimeSourceFromPath": "pattern* timestampFormat",
    "EventTimeSourceFromSystemTime": "",
    "SourceCachingForever": "",
    "PrepStepDecompress": "format* subPath",
    "PrepStepPipe": "command*",
    "DataSchema": "fields* extra",
    "DataField": "name* type* extra",
    "DataTypeBinary": "fixedLength",
    "DataTypeDecimal": "precision* scale*",
    "DataTypeDuration": "unit",
    "DataTypeList": "itemType* fixedLength",
    "DataTypeMap": "keyType* valueType* keysSorted",
    "DataTypeOption": "inner*",
    "DataTypeStruct": "fields*",
    "DataTypeTime": "unit",
    "DataTypeTimestamp": "unit timezone",
    **{
        f"DataType{name}": ""
        for name in (
            *("Bool", "Date", "Null", "String", "Float16", "Float32", "Float64"),
            *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
        )
    },
    "DatasetSnapshot": "name* kind* metadata*",
    "Watermark": "systemTime* eventTime*",
    # Required by the facts; here its fields have the names that hold where a dataset says nothing.
    "DatasetVocabulary": "offsetColumn operationTypeColumn systemTimeColumn eventTimeColumn",
}
"""Object → its properties in the order in which they are written, required ones with a star, without the kind."""

INTEGER_BOUNDS = {"port": (-(2**31), 2**31 - 1), "scale": (-(2**31), 2**31 - 1), "precision": (0, 2**32 - 1)}
"""All other integers are u64."""

ENUMS = {"datasetKind", "format", "order", "qos", "unit"}
"""Properties whose values are names of members."""

FREE_TEXT_KIND = {"sourceName", "kind", "value"}
"""A source state is no union: its kind may be any text."""

Place = tuple[str | int, ...]


def read(event: Document) -> MetadataBlock:
    return MetadataBlock.model_validate(a_block(event), by_alias=True, by_name=False)


def result(event: Document) -> MetadataBlock | None:
    """What is read, None where it is refused."""
    try:
        return read(event)
    except ValidationError:
        return None


def places(document: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value within a document and where it stands; what extra attributes hold is nobody's business."""
    if isinstance(document, dict):
        for name, item in document.items():
            yield (*place, name), item
            if name != "extra":
                yield from places(item, (*place, name))
    elif isinstance(document, list):
        for index, item in enumerate(document):
            yield (*place, index), item
            yield from places(item, (*place, index))


def objects(document: Document) -> Iterator[tuple[Place, Document]]:
    yield (), document
    yield from ((place, item) for place, item in places(document) if isinstance(item, dict) and place[-1] != "extra")


def edited(document: Document, place: Place, **changes: Any) -> Document:
    """A copy in which the object at the place has other properties; `...` takes one away."""
    changed = copy.deepcopy(document)
    target: Any = changed
    for step in place:
        target = target[step]
    for name, value in changes.items():
        if value is ...:
            del target[name]
        else:
            target[name] = value
    return changed


def replaced(document: Document, place: Place, value: Any) -> Document:
    """A copy with another value at the place."""
    changed = copy.deepcopy(document)
    target: Any = changed
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return changed


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reversed_keys(item) for name, item in reversed(value.items())}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(params=EVENTS)
def event(request: pytest.FixtureRequest) -> Document:
    return EVENTS[request.param]


class TestTheFacts:
    def test_they_cover_every_object(self) -> None:
        models = {plan.model for plan in PLANS.values() if not plan.transparent}
        roots = (*reachable(MetadataBlock), *reachable(DatasetSnapshot), Watermark, DatasetVocabulary)
        models |= {model for model in roots if issubclass(model, Model)}
        assert {model.__name__ for model in models if issubclass(model, Model)} == set(FIELDS)

    def test_every_object_has_its_properties_in_order(self) -> None:
        roots = (*reachable(MetadataBlock), *reachable(DatasetSnapshot), Watermark, DatasetVocabulary)
        for model in {model for model in roots if issubclass(model, Model)}:
            described = (
                f"{field.alias}{'*' * field.is_required()}"
                for name, field in model.model_fields.items()
                if name != "kind" or field.is_required()
            )
            assert " ".join(described) == FIELDS[model.__name__]


class TestWriting:
    def test_properties_are_written_in_the_order_of_the_facts_however_they_came(self, event: Document) -> None:
        assert json.dumps(read(reversed_keys(event)).to_document()) == json.dumps(a_block(event))

    def test_what_is_written_is_read_as_the_same(self, event: Document) -> None:
        block = read(event)
        assert MetadataBlock.model_validate(block.to_document(), by_alias=True, by_name=False) == block

    @pytest.mark.parametrize(
        "sparse",
        [
            {"kind": "AddData"},
            {"kind": "SetVocab"},
            {"kind": "SetInfo"},
            *(
                {"kind": "AddPushSource", "sourceName": "", "read": {"kind": read}, "merge": {"kind": "Append"}}
                for read in ("Csv", "Json", "NdJson", "GeoJson", "NdGeoJson", "Parquet", "EsriShapefile")
            ),
            {
                "kind": "SetPollingSource",
                "fetch": {"kind": "Mqtt", "host": "a", "port": 1, "topics": [{"path": "b"}]},
                "read": {"kind": "Csv"},
                "merge": {"kind": "Snapshot", "primaryKey": []},
            },
            {
                "kind": "SetDataSchema",
                "schema": {
                    "fields": [
                        {"name": "a", "type": {"kind": "Timestamp"}},
                        {"name": "b", "type": {"kind": "Time"}},
                        {"name": "c", "type": {"kind": "Duration"}},
                        {"name": "d", "type": {"kind": "Binary"}},
                        {"name": "e", "type": {"kind": "List", "itemType": {"kind": "Null"}}},
                    ]
                },
            },
        ],
        ids=lambda sparse: sparse["kind"],
    )
    def test_defaults_are_not_filled_in(self, sparse: Document) -> None:
        assert read(sparse).to_document() == a_block(sparse)


class TestPropertyNames:
    def test_unknown_properties_are_refused_in_every_object(self, event: Document) -> None:
        for place, _ in objects(event):
            assert result(edited(event, place, unknown=None)) is None

    def test_snake_case_is_refused(self, event: Document) -> None:
        for place, value in places(event):
            name = place[-1]
            if isinstance(name, str) and (snake := to_snake(name)) != name:
                assert result(edited(event, place[:-1], **{name: ..., snake: value})) is None

    def test_no_other_casing_is_read(self, event: Document) -> None:
        for place, value in places(event):
            name = place[-1]
            for other in {name.upper(), name.title()} if isinstance(name, str) else ():
                assert result(edited(event, place[:-1], **{str(name): ..., other: value})) is None


class TestNull:
    def test_null_is_the_same_as_absent(self, event: Document) -> None:
        for place, _ in places(event):
            if isinstance(name := place[-1], str):
                absent = result(edited(event, place[:-1], **{name: ...}))
                assert result(edited(event, place[:-1], **{name: None})) == absent

    def test_a_list_has_no_nulls(self, event: Document) -> None:
        for place, _ in places(event):
            if isinstance(place[-1], int):
                assert result(replaced(event, place, None)) is None


class TestSpellings:
    """Kinds and members of enums are read in three spellings, and written in PascalCase."""

    def names(self, event: Document) -> Iterator[tuple[Place, str]]:
        for place, value in places(event):
            tag = place[-1] == "kind" and set(self.owner(event, place)) != FREE_TEXT_KIND
            if tag or place[-1] in ENUMS:
                yield place, value

    def owner(self, event: Document, place: Place) -> Document:
        owner: Any = event
        for step in place[:-1]:
            owner = owner[step]
        assert isinstance(owner, dict)
        return owner

    def test_camel_case_and_lower_case_are_read_as_well(self, event: Document) -> None:
        for place, name in self.names(event):
            for spelling in (name[0].lower() + name[1:], name.lower()):
                block = result(replaced(event, place, spelling))
                assert block is not None
                assert block.to_document() == a_block(event)

    def test_no_other_casing_is_read(self, event: Document) -> None:
        for place, name in self.names(event):
            others = {name.upper(), name.swapcase(), name.capitalize(), f" {name}", name + "s", ""}
            for spelling in others - {name, name[0].lower() + name[1:], name.lower()}:
                assert result(replaced(event, place, spelling)) is None

    def test_a_name_is_a_text(self, event: Document) -> None:
        for place, name in self.names(event):
            for odd in (0, 1, True, [name], {"kind": name}):
                assert result(replaced(event, place, odd)) is None


class TestValues:
    def integers(self, event: Document) -> Iterator[tuple[Place, int]]:
        return ((place, value) for place, value in places(event) if type(value) is int)

    def test_integers_are_neither_texts_nor_flags_nor_fractions(self, event: Document) -> None:
        for place, value in self.integers(event):
            for odd in (str(value), True, False, float(value), [value]):
                assert result(replaced(event, place, odd)) is None

    def test_integers_have_the_bounds_of_their_width(self, event: Document) -> None:
        for place, _ in self.integers(event):
            lower, upper = INTEGER_BOUNDS.get(str(place[-1]), (0, 2**64 - 1))
            for value in (lower, upper):
                block = result(replaced(event, place, value))
                assert block is not None
                assert block.to_document() == a_block(replaced(event, place, value))
            for value in (lower - 1, upper + 1):
                assert result(replaced(event, place, value)) is None

    def test_flags_are_neither_numbers_nor_texts(self, event: Document) -> None:
        for place, value in places(event):
            for odd in (0, 1, "true", "yes", "") if isinstance(value, bool) else ():
                assert result(replaced(event, place, odd)) is None

    def test_texts_are_no_other_values(self, event: Document) -> None:
        odds: tuple[Any, ...] = (5, 0.5, True, {})
        for place, value in places(event):
            for odd in odds if isinstance(value, str) else ():
                assert result(replaced(event, place, odd)) is None

    def test_texts_have_bytes(self, event: Document) -> None:
        for place, value in places(event):
            if isinstance(value, str):
                assert result(replaced(event, place, "\ud800")) is None

    def test_lists_and_objects_are_no_other_values(self, event: Document) -> None:
        for place, value in places(event):
            for odd in ("", 0, False) if isinstance(value, list | dict) and place[-1] != "schema" else ():
                assert result(replaced(event, place, odd)) is None


class TestBlock:
    EVENT = {"kind": "DisablePollingSource"}

    def test_a_block_needs_a_time_a_number_and_an_event(self) -> None:
        for name in ("systemTime", "sequenceNumber", "event"):
            for document in (edited(a_block(self.EVENT), (), **{name: ...}), a_block(self.EVENT) | {name: None}):
                with pytest.raises(ValidationError):
                    MetadataBlock.model_validate(document, by_alias=True, by_name=False)

    def test_the_first_block_has_no_previous_one(self) -> None:
        document = edited(a_block(self.EVENT), (), prevBlockHash=...)
        block = MetadataBlock.model_validate(document, by_alias=True, by_name=False)
        assert block.prev_block_hash is None
        assert block.to_document() == document

    @pytest.mark.parametrize("spelling", [HASH, "F" + HASH[1:].upper()])
    def test_hashes_are_written_in_lower_case_base16(self, spelling: str) -> None:
        document = a_block(self.EVENT) | {"prevBlockHash": spelling}
        block = MetadataBlock.model_validate(document, by_alias=True, by_name=False)
        assert block.to_document() == a_block(self.EVENT)

    def test_times_are_written_in_utc(self) -> None:
        document = a_block(self.EVENT) | {"systemTime": "2020-01-01T13:30:00.500+01:30"}
        block = MetadataBlock.model_validate(document, by_alias=True, by_name=False)
        assert block.to_document()["systemTime"] == "2020-01-01T12:00:00.500Z"


def test_programs_use_the_names_of_python() -> None:
    for block in full_blocks().values():
        assert type(block)(**dict(block)) == block
