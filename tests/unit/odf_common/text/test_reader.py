"""What is read, and as what."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odf_common.text.composer import MAX_DEPTH, MAX_VALUES
from odf_common.text.document import JsonValue
from odf_common.text.errors import InvalidManifestError
from odf_common.text.reader import MAX_BYTES, read_document, read_documents
from odf_common.text.writer import write_json
from tests.strategies import examples
from tests.unit.odf_common.text.documents import json_values


def values(data: bytes | str) -> list[JsonValue]:
    return [document.value for document in read_documents(data)]


def refused(data: bytes | str) -> InvalidManifestError:
    with pytest.raises(InvalidManifestError) as caught:
        list(read_documents(data, source="block.yaml"))
    return caught.value


# ---- YAML


def test_block_and_flow_style_mean_the_same() -> None:
    assert (
        values("a: 1\nb:\n- x\n- c: null\n") == values("{a: 1, b: [x, {c: }]}") == [{"a": 1, "b": ["x", {"c": None}]}]
    )


def test_quoted_scalars_are_texts() -> None:
    assert values("['1', \"true\", '~', \"\"]") == [["1", "true", "~", ""]]


def test_literal_and_folded_blocks_are_texts() -> None:
    assert values("a: |\n  1\n  2\nb: >-\n  1\n  2\nc: |\n  5\n") == [{"a": "1\n2\n", "b": "1 2", "c": "5\n"}]


def test_escapes_may_name_any_character_but_half_of_one() -> None:
    assert values(r'"\0\x7f\N\L\P\ufeff\U0001F600\/"') == ["\0\x7f\x85\u2028\u2029\ufeff😀/"]


def test_comments_and_crlf_line_ends_are_read() -> None:
    assert values("# first\r\na: b # second\r\nc: |\r\n  d\r\n  e\r\n") == [{"a": "b", "c": "d\ne\n"}]


def test_documents_come_in_order_and_empty_ones_are_left_out() -> None:
    assert values("---\n---\na: 1\n---\n# nothing\n---\n- 2\n...\n---\n~\n---\n") == [{"a": 1}, [2], None]


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "\ufeff"])
def test_a_text_may_hold_no_document(text: str) -> None:
    assert values(text) == []


def test_documents_before_an_error_are_given() -> None:
    documents = read_documents("a: 1\n---\na: &x 2\n")
    assert next(documents).value == {"a": 1}
    with pytest.raises(InvalidManifestError):
        next(documents)


def test_exactly_one_document_can_be_asked_for() -> None:
    assert read_document("---\na: 1\n---\n").value == {"a": 1}
    with pytest.raises(InvalidManifestError, match=r"block\.yaml:1:1: there is no document in it"):
        read_document("", source="block.yaml")
    with pytest.raises(InvalidManifestError, match=r"block\.yaml:3:1: a second document begins here"):
        read_document("a: 1\n---\nb: 1\n", source="block.yaml")


# ---- Refused, with position


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("a: &x 1", "1:4", 'anchors ("x") are not read; remove it'),
        ("a: 1\nb:\n  - *x\n", "3:5", 'aliases ("x") are not read; write the value out'),
        ("a: !!str 1", "1:4", 'tags ("tag:yaml.org,2002:str") are not read'),
        ("a: ! 1", "1:4", 'tags ("!") are not read'),
        ("!secret {a: 1}", "1:1", 'tags ("!secret") are not read'),
        ("%TAG ! tag:example.org,2020:\n---\na", "1:1", "of all directives only %YAML 1.2 is read"),
        ("%YAML 1.1\n---\na: yes", "1:1", "of all directives only %YAML 1.2 is read"),
        ("b:\n  a: 1\n  a: 2\n", "3:3", 'b.a: duplicate key "a", first given in line 2'),
        ('{"b": [{"a": 1,\n"a": 2}]}', "2:1", 'b[0].a: duplicate key "a", first given in line 1'),
        ("a:\n  1: b", "2:3", 'a: keys are texts: quote the key "1"'),
        ("true: b", "1:1", 'keys are texts: quote the key "true"'),
        ("? \n: b", "1:2", 'keys are texts: quote the key ""'),
        ("? [a]\n: b", "1:3", "an object or list cannot be a key"),
        ("<<: {a: 1}", "1:1", "merge keys are not read"),
        ("a: .inf", "1:4", "a: .inf is not a finite number"),
        ("[1e999]", "1:2", "[0]: 1e999 is not a finite number"),
        ("a: " + "1" * 41, "1:4", "a: a number of 41 characters; at most 40 are read"),
        ("a: b: c", "1:5", "not YAML: mapping values are not allowed in this context; quote a text that holds ': '"),
        ("a:\n  b: 1\n\tc: 2", "3:1", "indent with spaces"),
        ("a: @b", "1:4", "quote a text that begins with @, ` or %"),
        ('a: "C:\\q"', "1:7", "write a backslash between double quotes as \\\\"),
        ("a: [1, 2\n", "2:1", "did not find expected ',' or ']'"),
        ("a: 'b", "1:6", "found unexpected end of stream"),
        ("a: b\0", "1:5", "the character U+0000 cannot stand in YAML"),
        ("é: 😀\n  b\x1bc", "2:4", "the character U+001B cannot stand in YAML"),
        ("a: b\u2028c", "1:5", "the character U+2028 cannot stand in YAML"),
        ("a: b\ufeffc", "1:5", "the character U+FEFF cannot stand in YAML"),
        ("a:\n- \ud800", "2:3", "half a character (a lone surrogate)"),
    ],
)
def test_what_json_cannot_say_is_refused_where_it_stands(text: str, place: str, reason: str) -> None:
    message = str(refused(text))
    assert message.startswith(f"block.yaml:{place}: ")
    assert reason in message


@pytest.mark.parametrize(
    ("data", "place"), [(b"a: \xff", "1:4"), (b"a: \xc3\xa9\nb: \xc3", "2:4"), ("a: é".encode("utf-16"), "1:1")]
)
def test_bytes_that_are_not_utf_8_are_refused_where_they_stand(data: bytes, place: str) -> None:
    assert str(refused(data)).startswith(f"block.yaml:{place}: not UTF-8: ")


@pytest.mark.parametrize("text", ["<text>", "'<<': 1", '{"<<": 1}'])
def test_a_quoted_merge_key_is_a_key_like_any_other(text: str) -> None:
    assert values(text)


# ---- Limits


@pytest.mark.parametrize("text", ["[", "- ", '{"a":', "{a: ", "? ", "a:\n "])
def test_a_document_is_not_nested_without_end(text: str) -> None:
    refused(text * 100_000)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("{a: ", "}")])
def test_nesting_has_a_limit(opening: str, closing: str) -> None:
    assert values(opening * MAX_DEPTH + "1" + closing * MAX_DEPTH)
    error = refused(opening * (MAX_DEPTH + 1) + "1" + closing * (MAX_DEPTH + 1))
    assert "nested more than 64 deep" in error.reason
    assert (error.line, error.column) == (1, MAX_DEPTH * len(opening) + 1)


@pytest.mark.parametrize("data", ["é" * (MAX_BYTES // 2), b"a" * MAX_BYTES])
def test_a_text_may_be_as_large_as_the_limit(data: bytes | str) -> None:
    assert values(data)


@pytest.mark.parametrize("data", ["a" + "é" * (MAX_BYTES // 2), b"a" * (MAX_BYTES + 1), "a" * (MAX_BYTES + 1)])
def test_a_larger_text_is_not_looked_at(data: bytes | str) -> None:
    assert refused(data).reason == "more than 16777216 bytes of text"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["[" + "1," * MAX_VALUES + "1]", "[x," + "1," * MAX_VALUES + "]", "---\n1\n" * MAX_VALUES]
)
def test_the_number_of_values_has_a_limit(text: str) -> None:
    assert "more than 200000 values" in refused(text + "\n---\n1\n").reason


def test_a_hostile_text_cannot_flood_the_message() -> None:
    assert len(str(refused('"a": 1\n' + "x" * 100_000 + ": &" + "y" * 100_000 + " 1"))) < 200
    assert len(str(refused("a: !" + "x" * 100_000 + " 1"))) < 200
    assert "\n" not in str(refused('{"a\\n\\n": 1, "a\\n\\n": 2}'))


# ---- JSON


def test_surrogate_escapes_of_json_are_one_character() -> None:
    assert values(r'{"a": "\ud83d\ude00\/"}') == [{"a": "😀/"}]


def test_json_may_hold_characters_that_yaml_may_not() -> None:
    assert values('["\x7f\x85\u2028\ufeff\uffff"]') == [["\x7f\x85\u2028\ufeff\uffff"]]


def test_json_may_be_indented_with_tabs_and_begin_with_a_byte_order_mark() -> None:
    assert values('\ufeff \r\n\t{\n\t"a":\t[\n\t]\n}\n'.encode()) == [{"a": []}]


@pytest.mark.parametrize("text", [r'["\ud83d"]', r'{"\ude00": 1}', r'"\ud83d\ud83d"'])
def test_half_a_character_in_json_is_refused(text: str) -> None:
    assert "lone surrogate" in refused(text).reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1}", {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ("[1, # one\n2]", [1, 2]),
        ('"a": 1', {"a": 1}),
        ('{"a": 1}\n---\n', {"a": 1}),
        ("[a, 'b']", ["a", "b"]),
        ("[01]", [1]),
    ],
)
def test_yaml_that_looks_like_json_is_read_as_yaml(text: str, value: JsonValue) -> None:
    assert values(text) == [value]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ('{"a": "\\ud83d\\ude00",\n "b" 1}', "2:6", "not JSON: expected ':' after the key"),
        ('["\\ud83d\\ude00", 1,]', "1:20", "not JSON: expected a value"),
        ('{"a": "\\ud83d\\ude00", b: 1}', "1:23", "not JSON: expected a key between double quotes"),
        ('{"a": "\\ud83d\\ude00" "b"}', "1:22", "not JSON: expected ',' or '}'"),
        ('["\\ud83d\\ude00"] []', "1:18", "not JSON: nothing may follow the end"),
        ('["\\ud83d\\ude00", "', "1:18", "not JSON: Unterminated string starting at"),
        ('{"a": [1, *b]}', "1:11", "aliases"),
    ],
)
def test_of_two_readings_that_fail_the_one_that_got_further_is_reported(text: str, place: str, reason: str) -> None:
    message = str(refused(text))
    assert message.startswith(f"block.yaml:{place}: ")
    assert reason in message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_only_python_calls_json_are_texts_as_yaml_has_it(number: str) -> None:
    assert values(f"[{number}]") == [[number]]


@examples(300)
@given(json_values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_all_that_json_can_say_is_read(value: JsonValue, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert repr(read_document(text).value) == repr(json.loads(text))


# ---- Anything at all

_SYNTAX = st.sampled_from(
    [*" \t\n-#:?'\"|>&*!%@`{}[],a0=~\\\0é😀\u2028", ": ", "- ", "\n  ", "---\n", "\\u", "<<", '":']
)


@examples(1000)
@example("- a\nb").via("a key that never ends")
@given(st.lists(_SYNTAX, max_size=20).map("".join) | st.text(max_size=30))
def test_any_text_is_read_or_refused_and_says_no_more_than_json(text: str) -> None:
    try:
        documents = values(text)
    except InvalidManifestError:
        return
    for value in documents:
        assert repr(read_document(write_json(value)).value) == repr(value)


@examples(500)
@given(st.binary(max_size=30))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(InvalidManifestError):
        values(data)


def test_reading_and_writing_do_not_wait_for_pydantic() -> None:
    program = "import sys, odf_common.text.reader, odf_common.text.writer; sys.exit('pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
