"""Where things stand in a text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.text.document import Document, JsonValue, Path, Position, SourceText, path_text
from odf_common.text.reader import read_document, read_documents
from odf_common.text.writer import write_document
from tests.strategies import examples
from tests.unit.odf_common.text.documents import json_values

BLOCK = """\
# a comment
kind: Block
event:
  inputs:
  - alias: é😀
  - {alias: b, "quoted": 1}
  text: |
    x
  last: 1
"""


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ((), (2, 1)),
        (("kind",), (2, 1)),
        (("event", "inputs"), (4, 3)),
        (("event", "inputs", 0), (5, 5)),
        (("event", "inputs", 0, "alias"), (5, 5)),
        (("event", "inputs", 1), (6, 5)),
        (("event", "inputs", 1, "quoted"), (6, 16)),
        (("event", "last"), (9, 3)),
    ],
)
def test_a_field_stands_where_its_key_is_and_an_item_where_it_begins(path: Path, position: tuple[int, int]) -> None:
    assert read_document(BLOCK).position_of(path) == position


@pytest.mark.parametrize(
    ("path", "position"),
    [
        (("event", "AddData", "inputs", 1, "Sql", "alias"), (6, 6)),
        (("event", "inputs", 7), (4, 3)),
        (("event", "inputs", "alias"), (4, 3)),
        (("event", "missing"), (3, 1)),
        (("missing",), (2, 1)),
        (("kind", "function-plain[parse()]"), (2, 1)),
    ],
)
def test_parts_of_a_path_that_name_no_child_are_skipped(path: Path, position: tuple[int, int]) -> None:
    assert read_document(BLOCK).position_of(path) == position


def test_the_way_that_was_found_leaves_out_what_was_skipped() -> None:
    at, found = read_document(BLOCK).follow(("event", "AddData", "inputs", 1, "quoted", "str"))
    assert BLOCK[at:].startswith('"quoted"')
    assert found == ("event", "inputs", 1, "quoted")


def test_columns_count_characters_whatever_their_size() -> None:
    assert read_document('["😀é\\u00e9", {"a": 1}]').position_of((1, "a")) == (1, 15)
    assert read_document("😀é: {a: 1}").position_of(("😀é", "a")) == (1, 6)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("text", [BLOCK, json.dumps({"a": [1, {"last": 2}], "event": {"last": 1}}, indent=2)])
def test_lines_end_as_on_any_system(line_end: str, text: str) -> None:
    path = ("event", "last")
    assert read_document(text.replace("\n", line_end)).position_of(path) == read_document(text).position_of(path)


def test_positions_count_from_the_start_of_the_text_in_every_document() -> None:
    first, second = read_documents("\ufeffa: 1\n---\nb:\n  c: 1\n", source="two.yaml")
    assert first.position_of(("a",)) == (1, 1)
    assert second.position_of(("b", "c")) == (4, 3)
    assert second.source == "two.yaml"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("event", "inputs", 0, "alias"), "event.inputs[0].alias"),
        ((0, "a"), "[0].a"),
        (("a b", "c.d", "x\n"), '"a b"."c.d"."x\\n"'),
        (("kebab-case", "snake_case", "ünï"), "kebab-case.snake_case.ünï"),
    ],
)
def test_paths_are_written_as_in_a_program(path: Path, text: str) -> None:
    assert path_text(path) == text


def test_a_long_key_is_cut_in_a_path() -> None:
    assert len(path_text(["x" * 1000, "y" * 1000])) < 150


@given(st.text("ab\n\r", max_size=20), st.data())
def test_line_and_column_are_those_of_an_editor(content: str, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(content)).filter(lambda i: content[i - 1 : i + 1] != "\r\n"))
    lines = content[:index].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert SourceText("x", content).position(index) == Position(len(lines), len(lines[-1]) + 1)


@examples(200)
@given(json_values, st.sampled_from([None, 2]))
def test_every_part_of_json_is_found_where_it_stands(value: JsonValue, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    _check_places(read_document(text), text)


@examples(100)
@given(json_values)
def test_every_part_of_yaml_is_found_where_it_stands(value: JsonValue) -> None:
    text = write_document(value)
    _check_places(read_document(text), text)


def _check_places(document: Document, text: str) -> None:
    """What begins where a path leads to is the key or value at its end, quoted or plain."""
    for path, value in _parts(document.value, ()):
        at, found = document.follow(path)
        assert found == path
        start = text[at:]
        if path and isinstance(path[-1], str):
            assert start.startswith((json.dumps(path[-1]), '"', "'", *path[-1][:1]))
        elif isinstance(value, str):
            assert start.startswith((json.dumps(value), '"', "'", "|", *value[:1]))
        elif not isinstance(value, list | dict):
            assert start.startswith(json.dumps(value)[:1])


def _parts(value: JsonValue, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], JsonValue]]:
    children: list[tuple[str | int, JsonValue]] = []
    if isinstance(value, dict):
        children = [*value.items()]
    elif isinstance(value, list):
        children = [*enumerate(value)]
    return [(path, value)] + [part for key, child in children for part in _parts(child, (*path, key))]
