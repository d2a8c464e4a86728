from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.poller.errors import StepRefusedError
from services.poller.templates import Secrets, names_in

ALLOWED = frozenset({"KEY", "OTHER"})


def test_placeholders_are_filled() -> None:
    secrets = Secrets(ALLOWED, {"KEY": "abc", "OTHER": "d"})
    assert secrets.filled("https://x/?k=${{ env.KEY }}&o=${{env.OTHER}}") == "https://x/?k=abc&o=d"
    assert secrets.filled("nothing to fill: $KEY ${KEY} {{ env.KEY }}") == "nothing to fill: $KEY ${KEY} {{ env.KEY }}"


def test_a_name_that_is_not_allowed_is_refused_even_if_it_is_set() -> None:
    with pytest.raises(StepRefusedError, match=r"HOME is not for sources.*ODF_POLLER_ENV_ALLOW"):
        Secrets(ALLOWED, {"HOME": "/root"}).filled("${{ env.HOME }}")


def test_a_name_that_is_not_set_is_refused() -> None:
    with pytest.raises(StepRefusedError, match="KEY, which the source uses, is not set"):
        Secrets(ALLOWED, {}).filled("${{ env.KEY }}")


@pytest.mark.parametrize(
    "text", ["${{ dataset.name }}", "${{ env.KEY || 'x' }}", "${{}}", "${{ env.A-B }}", "${{ env.\nA B }}"]
)
def test_other_placeholders_are_refused(text: str) -> None:
    with pytest.raises(StepRefusedError, match="is not known: write"):
        names_in(text)


def test_a_value_is_no_template() -> None:
    assert Secrets(ALLOWED, {"KEY": "${{ env.OTHER }}", "OTHER": "x"}).filled("${{ env.KEY }}") == "${{ env.OTHER }}"


@given(st.text(min_size=1, alphabet=st.characters(codec="utf-8")), st.text(), st.text())
def test_values_are_hidden_however_they_are_quoted(value: str, before: str, after: str) -> None:
    secrets = Secrets(ALLOWED, {"KEY": value})
    secrets.filled("${{ env.KEY }}")
    for form in (value, quote(value), quote(value, safe=""), repr(value)):
        assert secrets.hidden(f"{before}{form}{after}").count("***") >= 1
    assert value not in secrets.hidden(value)


def test_of_values_that_contain_each_other_nothing_is_left() -> None:
    secrets = Secrets(ALLOWED, {"KEY": "abc", "OTHER": "abcdef"})
    secrets.filled("${{ env.KEY }}${{ env.OTHER }}")
    assert secrets.hidden("abcdef and abc") == "*** and ***"
