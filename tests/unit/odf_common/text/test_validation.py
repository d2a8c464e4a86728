"""What people are told when a document is not what a model expects."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator
from pydantic.alias_generators import to_camel

from odf_common.metadata.base import Model
from odf_common.metadata.manifests import (
    MANIFEST_MODELS,
    DatasetSnapshotManifest,
    MetadataBlockManifest,
    MetadataEventManifest,
)
from odf_common.text.errors import MAX_PROBLEMS, InvalidManifestError
from odf_common.text.reader import read_document
from odf_common.text.validation import validate
from odf_common.text.writer import write_document, write_json
from tests.strategies import examples, models
from tests.unit.odf_common.text.documents import json_values

HASH = "f16209eb949bd8ff0bb1d827f11809aebc6bd0d5955c7f368469a913c70d196620272"

BLOCK = f"""\
kind: MetadataBlock
version: 2
content:
  systemTime: 2020-01-01T12:00:00Z
  prevBlockHash: {HASH}
  sequenceNumber: 123
  event:
    kind: AddData
    newData:
      logicalHash: {HASH}
      physicalHash: {HASH}
      offsetInterval:
        start: 0
        end: 9
      size: 10
"""

SNAPSHOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: account/prices
  kind: Root
  metadata:
  - kind: SetPollingSource
    fetch:
      kind: Url
      url: https://example.org/prices.csv
      eventTime:
        kind: FromMetadata
      cache: forever
    prepare:
    - {kind: Decompress, format: Gzip}
    - {kind: Pipe, command: [cat]}
    read:
      kind: Csv
      schema:
      - price BIGINT
      header: true
    preprocess:
      kind: Sql
      engine: datafusion
      query: SELECT * FROM input
    merge:
      kind: Ledger
      primaryKey: [price]
  - kind: SetInfo
    keywords:
    - price
"""


def refused(model: type[BaseModel], text: str) -> InvalidManifestError:
    with pytest.raises(InvalidManifestError) as caught:
        validate(model, read_document(text, source="m.yaml"))
    return caught.value


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


# ---- ODF manifests


def test_a_manifest_is_read() -> None:
    block = validate(MetadataBlockManifest, read_document(BLOCK)).content
    assert block.sequence_number == 123
    assert str(block.prev_block_hash) == HASH
    assert validate(DatasetSnapshotManifest, read_document(SNAPSHOT)).content.name.account is not None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size: 10", 'size: "10"', '15:7: content.event.newData.size: expected an integer, got a text ("10")'),
        ("size: 10", "size: 10.0", "15:7: content.event.newData.size: expected an integer, got a number (10.0)"),
        ("size: 10", "size: null", "15:7: content.event.newData.size: expected an integer, got null"),
        ("size: 10", "size: [10]", "15:7: content.event.newData.size: expected an integer, got a list"),
        (
            "size: 10",
            "size: -1",
            "15:7: content.event.newData.size: should be greater than or equal to 0, got an integer (-1)",
        ),
        ("      size: 10\n", "", '9:5: content.event.newData.size: missing field "size"'),
        (
            "size: 10",
            "size: 10\n      siez: 1",
            '16:7: content.event.newData.siez: unknown field "siez" (did you mean "size"?); '
            "expected one of logicalHash, physicalHash, offsetInterval, size",
        ),
        (
            "    newData:",
            "    newdata: 1\n    newData:",
            '9:5: content.event.newdata: unknown field "newdata" (did you mean "newData"?); expected one of '
            "kind, prevCheckpoint, prevOffset, newData, newCheckpoint, newWatermark, newSourceState, extra",
        ),
        (
            "end: 9",
            "end: 9\n        x: 1",
            '15:9: content.event.newData.offsetInterval.x: unknown field "x"; expected one of start, end',
        ),
        (
            "kind: MetadataBlock",
            "kind: DatasetSnapshot",
            '1:1: kind: unknown value "DatasetSnapshot"; expected MetadataBlock',
        ),
        ("version: 2", "version: 1", "2:1: version: expected 2 or 3, got an integer (1)"),
        (f"prevBlockHash: {HASH}", "prevBlockHash: f1620zz", "5:3: content.prevBlockHash: invalid multihash 'f1620zz'"),
        ("2020-01-01T", "2020-13-01T", "4:3: content.systemTime: invalid date-time '2020-13-01T12:00:00Z': month must"),
    ],
)
def test_what_is_wrong_with_a_block_is_told_with_its_place(old: str, new: str, message: str) -> None:
    assert str(refused(MetadataBlockManifest, changed(BLOCK, old, new))).startswith(f"m.yaml:{message}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "kind: SetPollingSource",
            "kind: SetPolingSource",
            '7:5: content.metadata[0].kind: unknown kind "SetPolingSource" (did you mean "SetPollingSource"?); '
            "expected one of AddData, ExecuteTransform, Seed, SetPollingSource,",
        ),
        ("kind: SetInfo", "kind: 5", '29:5: content.metadata[1].kind: unknown kind "5"; expected one of AddData,'),
        (
            "    - {kind: Pipe, ",
            "    - {",
            '16:7: content.metadata[0].prepare[1].kind: missing field "kind"; expected one of Decompress, Pipe',
        ),
        (
            "kind: FromMetadata",
            "kind: FromPth",
            '12:9: content.metadata[0].fetch.eventTime.kind: unknown kind "FromPth" (did you mean "FromPath"?); '
            "expected one of FromMetadata, FromPath, FromSystemTime",
        ),
        (
            "kind: Sql",
            "kind: Sqll",
            '23:7: content.metadata[0].preprocess.kind: unknown value "Sqll" (did you mean "Sql"?); expected Sql',
        ),
        (
            "format: Gzip",
            "format: Bzip",
            '15:26: content.metadata[0].prepare[0].format: unknown value "Bzip" (did you mean "Gzip"?); '
            "expected one of Gzip, Zip",
        ),
        (
            "- price BIGINT",
            "- price BIGINT\n      - 5",
            "21:9: content.metadata[0].read.schema[1]: expected a text, got an integer (5)",
        ),
        (
            "header: true",
            "header: yes",
            '21:7: content.metadata[0].read.header: expected a boolean, got a text ("yes")',
        ),
        (
            "primaryKey: [price]",
            "primaryKey: price",
            '28:7: content.metadata[0].merge.primaryKey: expected a list, got a text ("price")',
        ),
        (
            "primaryKey: [price]",
            "primaryKey: [price]\n      compareColumns: [a]",
            '29:7: content.metadata[0].merge.compareColumns: unknown field "compareColumns"; '
            "expected one of kind, primaryKey",
        ),
        ("    - price\n", "    - price\n  - 5\n", "32:5: content.metadata[2]: expected an object, got an integer (5)"),
        ("kind: Root", "kind: rOOT", '5:3: content.kind: unknown value "rOOT"; expected one of Root, Derivative'),
        ("account/prices", "a/b/c", "4:3: content.name: invalid dataset alias 'a/b/c': more than 2 names joined"),
    ],
)
def test_what_is_wrong_with_a_snapshot_is_told_with_its_place(old: str, new: str, message: str) -> None:
    assert str(refused(DatasetSnapshotManifest, changed(SNAPSHOT, old, new))).startswith(f"m.yaml:{message}")


def test_a_document_that_is_no_object_is_refused() -> None:
    assert str(refused(MetadataEventManifest, "[1]")) == "m.yaml:1:1: expected an object, got a list"


def test_a_bad_schema_is_found_under_the_name_that_the_text_gives_it() -> None:
    text = "kind: MetadataEvent\nversion: 1\ncontent:\n  kind: SetDataSchema\n  schema: '???'\n"
    assert str(refused(MetadataEventManifest, text)).startswith("m.yaml:5:3: content.schema: not standard base64")


def test_python_names_are_not_read() -> None:
    error = refused(MetadataBlockManifest, changed(BLOCK, "sequenceNumber", "sequence_number"))
    assert 'unknown field "sequence_number" (did you mean "sequenceNumber"?)' in error.reason


def test_all_problems_are_kept_in_the_order_of_the_text_and_what_is_missing_comes_last() -> None:
    text = BLOCK.replace("      size: 10\n", "").replace("start: 0", "start: a").replace("123", "-1")
    error = refused(MetadataBlockManifest, text)
    assert [problem.field for problem in error.problems] == [
        "content.sequenceNumber",
        "content.event.newData.offsetInterval.start",
        "content.event.newData.size",
    ]
    assert str(error).endswith("(and 2 more problems)")


def test_a_hostile_document_cannot_flood_the_error() -> None:
    text = BLOCK + "".join(f"x{i}{'y' * 1000}: 1\n" for i in range(1000))
    error = refused(MetadataBlockManifest, text)
    assert (len(error.problems), error.omitted) == (MAX_PROBLEMS, 1000 - MAX_PROBLEMS)
    assert len(str(error)) < 500


@pytest.mark.parametrize("model", MANIFEST_MODELS)
@examples(150)
@given(st.data())
def test_every_manifest_can_be_written_and_read_in_yaml_and_json(model: type[Model], data: st.DataObject) -> None:
    manifest = data.draw(models(model))
    for text in (write_document(manifest.to_document()), write_json(manifest.to_document())):
        assert validate(model, read_document(text)) == manifest


@pytest.mark.parametrize("model", MANIFEST_MODELS)
@examples(100)
@given(json_values)
def test_nothing_but_our_own_error_comes_of_any_content(model: type[Model], value: Any) -> None:
    kind = model.model_fields["kind"].default
    document = {"kind": kind, "version": 1, "content": value}
    with pytest.raises(InvalidManifestError) as caught:
        validate(model, read_document(write_document(document)))
    assert all(problem.line >= 1 and problem.reason for problem in caught.value.problems)


# ---- Any other model


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", validate_by_name=True, validate_by_alias=True)


class Circle(Camel):
    kind: Literal["Circle"]
    radius_m: float


class Square(Camel):
    kind: Literal["Square", "Quad"]
    side_m: int


def _shape_of(value: Any) -> str:
    return "round" if "radiusM" in value else "angular" if "sideM" in value else "odd"


class Drawing(Camel):
    shapes: list[Annotated[Circle | Square, Field(discriminator="kind")]] = []
    by_name: dict[str, Square] = {}
    guessed: Annotated[
        Annotated[Circle, Tag("round")] | Annotated[Square, Tag("angular")], Discriminator(_shape_of)
    ] | (None) = None
    number_or_text: int | str | None = None
    flag: bool = False
    ratio: float = 0
    even: int = 0

    @field_validator("even")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shapes: [{kind: Circle, radiusM: x}]", '1:25: shapes[0].radiusM: expected a number, got a text ("x")'),
        (
            "shapes: [{kind: Quad, sideM: 1, z: 1}]",
            '1:33: shapes[0].z: unknown field "z"; expected one of kind, sideM',
        ),
        ("shapes: [{kind: Blob}]", '1:11: shapes[0].kind: unknown kind "Blob"; expected one of Circle, Square, Quad'),
        ("shapes: [{}]", '1:10: shapes[0].kind: missing field "kind"; expected one of Circle, Square, Quad'),
        (
            "byName: {a: {kind: Square, sidem: 1}}",
            '1:28: byName.a.sidem: unknown field "sidem" (did you mean "sideM"?)',
        ),
        ("guessed: {x: 1}", '1:1: guessed: unknown variant "odd"; expected one of round, angular'),
        ("guessed: {kind: Circle, radiusM: x}", '1:25: guessed.radiusM: expected a number, got a text ("x")'),
        ("numberOrText: []", "1:1: numberOrText: expected an integer, got a list (and 1 more problem)"),
        ("flag: 5", "1:1: flag: expected a boolean, got an integer (5)"),
        ("even: 3", "1:1: even: 3 is odd"),
        ("ratios: 3", '1:1: ratios: unknown field "ratios" (did you mean "ratio"?); expected one of shapes, byName,'),
    ],
)
def test_any_pydantic_model_has_errors_in_the_words_of_the_text(text: str, message: str) -> None:
    assert str(refused(Drawing, text)).startswith(f"m.yaml:{message}")


def test_pydantic_is_the_cause() -> None:
    assert type(refused(Drawing, "flag: 5").__cause__).__name__ == "ValidationError"
