"""What is written, byte for byte, and that it is read back."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from odf_common.text import writer, yaml_events
from odf_common.text.document import JsonValue
from odf_common.text.reader import read_document, read_documents
from odf_common.text.writer import Writable, write_document, write_documents, write_json
from tests.strategies import examples
from tests.unit.odf_common.text.documents import LOOK_ALIKES, json_values

SCHEMA = (
    "DAAAAAgACAAAAAQACAAAAAQAAAACAAAAQAAAAAQAAADY////GAAAAAwAAAAAAAAGEAAAAAAAAAAEAAQABAAAAAEAAABiAAAAEAAUABAAAAAPAAQAAAAI"
    "ABAAAAAYAAAAIAAAAAAAAAIcAAAACAAMAAQACwAIAAAAQAAAAAAAAAEAAAAAAQAAAGEAAAA="
)

BLOCK: Writable = {
    "kind": "MetadataBlock",
    "version": 2,
    "content": {
        "systemTime": "2020-01-01T12:00:00Z",
        "prevBlockHash": "f16209eb949bd8ff0bb1d827f11809aebc6bd0d5955c7f368469a913c70d196620272",
        "sequenceNumber": 123,
        "event": {"kind": "SetDataSchema", "schema": SCHEMA},
    },
}

BLOCK_TEXT = f"""\
kind: MetadataBlock
version: 2
content:
  systemTime: 2020-01-01T12:00:00Z
  prevBlockHash: f16209eb949bd8ff0bb1d827f11809aebc6bd0d5955c7f368469a913c70d196620272
  sequenceNumber: 123
  event:
    kind: SetDataSchema
    schema: {SCHEMA}
"""


def test_a_block_is_written_as_the_reference_writes_it() -> None:
    assert write_document(BLOCK) == BLOCK_TEXT


def test_lists_stand_at_the_column_of_their_key() -> None:
    value: Writable = {"inputs": [{"datasetRef": "a/b", "alias": "b"}, {"alias": "c"}], "lists": [[1, 2], []], "no": {}}
    assert write_document(value) == (
        "inputs:\n- datasetRef: a/b\n  alias: b\n- alias: c\nlists:\n- - 1\n  - 2\n- []\n'no': {}\n"
    )


def test_documents_are_separated_and_the_first_has_no_mark() -> None:
    assert write_documents([{"a": 1}, [2], "x"]) == "a: 1\n---\n- 2\n--- x\n"
    assert write_documents([]) == ""


def test_keys_keep_their_order() -> None:
    assert write_document({"b": 1, "a": 2, "C": 3}) == "b: 1\na: 2\nC: 3\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("one\ntwo\n", "|\n  one\n  two\n"),
        ("one\n  two", "|-\n  one\n    two\n"),
        ("# no comment\n---\n", "|\n  # no comment\n  ---\n"),
        ("one\ntwo\n\n", '"one\\ntwo\\n\\n"\n'),
        (" one\ntwo", '" one\\ntwo"\n'),
        ("one\r\ntwo", '"one\\r\\ntwo"\n'),
        ("one \ntwo", '"one \\ntwo"\n'),
        ("one\u2028two", '"one\\Ltwo"\n'),
    ],
)
def test_lines_are_a_block_where_nothing_can_get_lost(text: str, written: str) -> None:
    assert write_document({"a": text}) == "a: " + written


@pytest.mark.parametrize(
    "text",
    [
        *("2020-01-01T12:00:00Z", "2020-01-01T12:00:00.123Z", "2020-01-01", "did:odf:fed012e6f", "population BIGINT"),
        *("a,b", "it's", "a#b", "./*.csv", "https://opendata.ca/odf/x/", "yesterday", "nullable", "1.2.3", "é", "-x"),
        "word " * 200 + "word",
    ],
)
def test_texts_that_nobody_can_mistake_stand_without_quotes(text: str) -> None:
    assert write_document({"a": text, "b": [text]}) == f"a: {text}\nb:\n- {text}\n"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "~",
            "null",
            "Null",
            "true",
            "False",
            "yes",
            "No",
            "on",
            "OFF",
            "y",
            "N",
            "=",
            "<<",
            "1e5",
            "1E5",
            "1e+16",
        ),
        *("0", "-1", "007", "0x1f", "0o17", "0b11", "1_000", "12:30:45", "1.", ".5", ".inf", "-.INF", ".nan", "9" * 60),
        *(
            "- a",
            "a: b",
            "a #b",
            "#a",
            " a",
            "a ",
            "---",
            "...",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "[a",
            "{a",
            "|",
            ">",
        ),
    ],
)
def test_texts_that_some_reader_would_mistake_are_quoted(text: str) -> None:
    assert write_document({"a": text}) == f"a: '{text}'\n"
    assert write_document({text: "a"}) == f"'{text}': a\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((None, "null"), (True, "true"), (False, "false"), (0, "0"), (-(2**63), "-9223372036854775808")),
        *((0.5, "0.5"), (-0.0, "-0.0"), (1e16, "1.0e+16"), (1.5e-7, "1.5e-07"), (3.0, "3.0")),
    ],
)
def test_literals_are_written_so_that_every_reader_takes_them_for_what_they_are(value: Writable, written: str) -> None:
    assert write_document([value]) == f"- {written}\n"
    assert repr(yaml.safe_load(written)) == repr(value)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_not_finite_are_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="no form in JSON"):
        write_document([number])
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json([number])


@pytest.mark.parametrize("value", [b"bytes", object(), {1, 2}])
def test_values_that_json_does_not_know_are_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match="has no form in YAML"):
        write_document({"a": value})


def test_half_a_character_is_not_written() -> None:
    with pytest.raises(UnicodeEncodeError):
        write_document({"a": "\ud800"})


def test_tuples_and_read_only_mappings_are_written_like_lists_and_dicts() -> None:
    assert write_document(MappingProxyType({"a": (1, ())})) == "a:\n- 1\n- []\n"


def test_json_keeps_characters_and_order() -> None:
    assert write_json({"b": "é😀", "a": [1]}) == '{\n  "b": "é😀",\n  "a": [\n    1\n  ]\n}\n'
    assert write_json({"b": 1, "a": 2}, indent=None) == '{"b": 1, "a": 2}\n'


# ---- Read back


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_texts_that_look_like_something_else_are_read_back_as_texts(text: str) -> None:
    value: JsonValue = {"a": text, text + "b": [text, [text], {text: text}], text: {text: text}}
    assert read_document(write_document(value)).value == value
    assert read_document(write_document(text)).value == text


@examples(300)
@given(st.lists(json_values, max_size=3))
def test_what_is_written_is_read_back(values: list[JsonValue]) -> None:
    _check_read_back(values)


@pytest.mark.slow
@examples(2000)
@given(st.lists(json_values, max_size=3))
def test_whatever_is_written_is_read_back(values: list[JsonValue]) -> None:
    _check_read_back(values)


def _check_read_back(values: list[JsonValue]) -> None:
    read = [document.value for document in read_documents(write_documents(values))]
    assert repr(read) == repr(values)


@examples(300)
@given(json_values, st.sampled_from([None, 2]))
def test_json_is_read_back_by_this_reader_and_by_any_other(value: JsonValue, indent: int | None) -> None:
    written = write_json(value, indent=indent)
    assert repr(read_document(written).value) == repr(json.loads(written)) == repr(value)


@examples(300)
@given(json_values)
def test_yaml_1_1_reads_the_same_but_for_dates(value: JsonValue) -> None:
    read = yaml.load(write_document(value), Loader=_Yaml11WithoutDates)
    assert repr(read) == repr(value)


@examples(200)
@given(json_values)
def test_the_emitter_and_the_parser_in_python_can_stand_in_for_those_in_c(value: JsonValue) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_DUMPER", yaml.SafeDumper)
        written = write_document(value)
        assert repr(read_document(written).value) == repr(value)
        patch.setattr(yaml_events, "_LOADER", yaml.SafeLoader)
        assert repr(read_document(written).value) == repr(value)


class _Yaml11WithoutDates(yaml.SafeLoader):
    """PyYAML as everybody uses it; dates stay texts."""

    yaml_implicit_resolvers = {
        start: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for start, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
