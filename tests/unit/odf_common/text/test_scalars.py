"""The core schema of YAML 1.2, and what older YAML would have made of it."""

from __future__ import annotations

import pytest

from odf_common.text.scalars import MAX_NUMBER_CHARACTERS, is_plain_text, plain_scalar


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null_has_five_spellings(text: str) -> None:
    assert plain_scalar(text) is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("True", True), ("FALSE", False), ("false", False)])
def test_booleans_are_true_and_false_only(text: str, value: bool) -> None:
    assert plain_scalar(text) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("0123", 123),
        ("0o17", 15),
        ("0x1fF", 511),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_integers_are_decimal_octal_or_hexadecimal(text: str, value: int) -> None:
    found = plain_scalar(text)
    assert type(found) is int
    assert found == value


@pytest.mark.parametrize(
    ("text", "value"), [("1.5", 1.5), ("-.5", -0.5), ("1.", 1.0), ("1e5", 1e5), ("+6.02E+23", 6.02e23), ("0.0", 0.0)]
)
def test_reals_may_lack_either_side_of_the_dot(text: str, value: float) -> None:
    found = plain_scalar(text)
    assert type(found) is float
    assert found == value


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "No", "on", "OFF", "y", "12:30:45", "1_000", "0b11", "2020-01-01", "2020-01-01T12:00:00Z", "=", "<<"),
        *("nan", "inf", "Infinity", "nULL", "tRUE", "-0x1f", "0X1F", "0o8", "1e", "e5", ".", "-", "+", "1.2.3", "١٢"),
    ],
)
def test_what_only_yaml_1_1_or_nobody_calls_a_value_is_text(text: str) -> None:
    assert plain_scalar(text) == text
    assert is_plain_text(text)


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a finite number; quote it"):
        plain_scalar(text)


@pytest.mark.parametrize("text", ["1" * 41, "-" + "1" * 40, "0x" + "f" * 39, "0." + "1" * 39, "1" * 1_000_000])
def test_numbers_of_unreasonable_length_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_NUMBER_CHARACTERS}"):
        plain_scalar(text)


@pytest.mark.parametrize("text", ["", "null", "true", "12", "1.5", ".inf", "1" * 50])
def test_only_text_may_stand_without_quotes(text: str) -> None:
    assert not is_plain_text(text)
