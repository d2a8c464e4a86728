"""Bytes as text, in every encoding that the multibase table calls final."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odf_common.errors import InvalidTextError
from odf_common.identity import multibase
from tests.strategies import examples
from tests.unit.odf_common.identity.encoders import ENCODERS


@given(st.binary(max_size=64))
def test_base16_is_written(data: bytes) -> None:
    assert multibase.encode(data) == "f" + data.hex()


@pytest.mark.parametrize("prefix", ENCODERS)
@examples(50)
@given(st.binary(max_size=40))
@example(b"")
@example(b"\0\0a")
def test_every_final_encoding_is_read(prefix: str, data: bytes) -> None:
    assert multibase.decode(prefix + ENCODERS[prefix](data)) == data


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "it is empty"),
        ("9123", 0, "unknown multibase prefix '9'"),
        ("v00", 0, "unknown multibase prefix 'v'"),
        ("é00", 0, "unknown multibase prefix 'é'"),
        ("\0", 0, "unknown multibase prefix"),
        ("f0g", 2, "Invalid character 'g'"),
        ("f0 ", 2, "Invalid character ' '"),
        ("f00\n", 3, "Invalid character"),
        ("f\u0660\u0660", 1, "Invalid character"),
        ("f0A", 2, "not the canonical form"),
        ("F0a", 2, "not the canonical form"),
        ("f0", 2, "an odd number of base16 digits"),
        ("FABC", 4, "an odd number of base16 digits"),
        ("z10l", 2, "Invalid character '0'"),
        ("uAB", 1, "Pad bits must be zero"),
        ("mAA==", 3, "not the canonical form"),
        ("UAA", 3, "not the canonical form"),
        ("f" + "0" * 511 + "é", 512, "longer than 512 characters"),
        ("z" + "1" * 512, 512, "longer than 512 characters"),
    ],
)
def test_other_text_is_refused_where_it_goes_wrong(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        multibase.decode(text, what="hash")
    assert caught.value.position == position
    assert caught.value.reason.startswith(reason)
    assert str(caught.value).startswith("invalid hash '")


@examples(500)
@given(st.text(max_size=20) | st.builds(str.__add__, st.sampled_from("fFbBzmuU"), st.text("0aAzZ+/-_= é", max_size=20)))
def test_no_two_texts_stand_for_the_same_bytes_in_one_encoding(text: str) -> None:
    try:
        data = multibase.decode(text)
    except InvalidTextError:
        return
    assert text == text[0] + ENCODERS[text[0]](data)
