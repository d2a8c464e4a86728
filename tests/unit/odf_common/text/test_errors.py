"""How a problem is told."""

from __future__ import annotations

import pytest

from odf_common.errors import OdfError
from odf_common.text.errors import InvalidManifestError, Problem, described, shown

WRONG_SIZE = Problem(line=7, column=5, field="event.newData.size", reason='expected an integer, got a text ("10")')
NO_EVENT = Problem(line=1, column=1, field="", reason="there is no document in it")


def test_the_message_says_where_and_what() -> None:
    error = InvalidManifestError("block.yaml", [WRONG_SIZE])
    assert str(error) == 'block.yaml:7:5: event.newData.size: expected an integer, got a text ("10")'
    assert (error.source, error.line, error.column, error.field) == ("block.yaml", 7, 5, "event.newData.size")
    assert error.reason == 'expected an integer, got a text ("10")'


def test_a_problem_of_the_whole_document_has_no_field() -> None:
    assert str(InvalidManifestError("-", [NO_EVENT])) == "-:1:1: there is no document in it"


@pytest.mark.parametrize(
    ("omitted", "ending"),
    [(0, " (and 1 more problem)"), (1, " (and 2 more problems)"), (98, " (and 99 more problems)")],
)
def test_further_problems_are_counted_in_the_message_and_kept_beside_it(omitted: int, ending: str) -> None:
    error = InvalidManifestError("block.yaml", [WRONG_SIZE, NO_EVENT], omitted=omitted)
    assert str(error).endswith(ending)
    assert error.problems == (WRONG_SIZE, NO_EVENT)


def test_it_is_an_error_of_the_core_and_of_a_value() -> None:
    assert issubclass(InvalidManifestError, OdfError)
    assert issubclass(InvalidManifestError, ValueError)
    assert InvalidManifestError.code == "InvalidManifest"


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (None, "null"),
        (True, "a boolean (true)"),
        (10, "an integer (10)"),
        (1.5, "a number (1.5)"),
        ("10", 'a text ("10")'),
        ([1], "a list"),
        ({"a": 1}, "an object"),
    ],
)
def test_values_are_called_as_in_json(value: object, description: str) -> None:
    assert described(value) == description


def test_shown_text_is_cut_and_stays_on_its_line() -> None:
    assert shown("é\n") == '"é\\n"'
    assert len(shown("x" * 1000)) < 70
