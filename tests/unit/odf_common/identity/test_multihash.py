"""Hashes that say how they were made."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from odf_common.errors import InvalidTextError, MalformedBytesError
from odf_common.identity.multihash import (
    ARROW0_SHA3_256,
    DIGEST_SIZE,
    SHA2_256,
    SHA3_256,
    Multihash,
    sha3_256,
    sha3_256_of,
)
from tests.strategies import examples, multihashes
from tests.unit.odf_common.identity.encoders import ENCODERS

HEX = "f162008c3792b2a4deed1bd7ea2328fb5de5531eccf0fbfa04a7d800cdc267137c635"
BASE58 = "zW1a3CNT52HXiJNniLkWMeev3CPRy9QiNRMWGyTrVNg4hY8"


# ---- Vectors


def test_a_hash_is_written_in_base16() -> None:
    assert str(sha3_256(b"multihash")) == HEX


def test_a_hash_is_read_in_base58_and_written_in_base16() -> None:
    assert Multihash.parse(BASE58) == sha3_256(b"multihash")
    assert str(Multihash.parse(BASE58)) == HEX


def test_people_are_shown_the_last_eight_characters() -> None:
    assert sha3_256(b"multihash").short == "7137c635"


@pytest.mark.parametrize(
    ("code", "prefix"),
    [(SHA2_256, "1220"), (SHA3_256, "1620"), (ARROW0_SHA3_256, "9680c00120"), (0x400000, "8080800220")],
)
def test_code_and_length_stand_before_the_digest(code: int, prefix: str) -> None:
    data = Multihash(code, bytes(range(32))).to_bytes()
    assert data.hex() == prefix + bytes(range(32)).hex()
    assert Multihash.from_bytes(data) == Multihash(code, bytes(range(32)))


@given(st.lists(st.binary(max_size=100)))
def test_a_stream_has_the_hash_and_size_of_its_bytes(chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    assert sha3_256_of(chunks) == (sha3_256(data), len(data))
    assert sha3_256(data).digest == hashlib.sha3_256(data).digest()


# ---- Round trips


@examples(200)
@given(multihashes())
def test_any_hash_keeps_its_bytes(multihash: Multihash) -> None:
    assert Multihash.from_bytes(multihash.to_bytes()) == multihash


@pytest.mark.parametrize("prefix", ENCODERS)
@examples(50)
@given(multihashes())
def test_any_hash_is_read_in_every_encoding(prefix: str, multihash: Multihash) -> None:
    assert Multihash.parse(prefix + ENCODERS[prefix](multihash.to_bytes())) == multihash


# ---- Refused


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "Varints must be at least 1 byte"),
        ("16", "Varints must be at least 1 byte"),
        ("80", "continuation byte"),
        ("1620", "declares 32 bytes of digest and has 0"),
        ("1620" + "00" * 31, "declares 32 bytes of digest and has 31"),
        ("1620" + "00" * 33, "declares 32 bytes of digest and has 33"),
        ("9680c00120" + "00" * 31, "declares 32 bytes of digest and has 31"),
        ("1621" + "00" * 33, "at most 32 are allowed"),
        ("1340" + "00" * 64, "at most 32 are allowed"),
        ("16ffffffffffffffff7f", "at most 32 are allowed"),
        ("960020" + "00" * 32, "not minimally encoded"),
        ("16a000" + "00" * 32, "not minimally encoded"),
        ("8000" + "0100", "not minimally encoded"),
        ("ff" * 9 + "010100", "at most 9 bytes"),
        ("ff" * 40, "at most 9 bytes"),
    ],
)
def test_bytes_that_are_no_multihash_are_refused(data: str, reason: str) -> None:
    with pytest.raises(MalformedBytesError, match=reason):
        Multihash.from_bytes(bytes.fromhex(data))
    with pytest.raises(InvalidTextError, match=reason):
        Multihash.parse("f" + data)


@pytest.mark.parametrize("data", ["1600", "120161", "ff" * 8 + "7f0161", "000161", "8001" + "20" + "00" * 32])
def test_a_hash_function_nobody_heard_of_and_a_short_digest_are_read(data: str) -> None:
    assert Multihash.from_bytes(bytes.fromhex(data)).to_bytes().hex() == data


@examples(500)
@given(
    st.binary(max_size=60)
    | st.builds(
        lambda prefix, digest: bytes.fromhex(prefix) + digest,
        st.sampled_from(["12", "16", "1620", "1220", "9680c00120", "9680c001", "1680", "ff", "80"]),
        st.binary(min_size=DIGEST_SIZE - 2, max_size=DIGEST_SIZE + 2),
    )
)
def test_any_bytes_are_a_multihash_in_its_only_form_or_refused(data: bytes) -> None:
    try:
        multihash = Multihash.from_bytes(data)
    except MalformedBytesError:
        return
    assert multihash.to_bytes() == data


@examples(500)
@given(st.text(max_size=80) | st.builds(str.__add__, st.sampled_from("fFbBzmuU"), st.text("016aAzZ29", max_size=80)))
def test_any_text_is_a_multihash_or_refused(text: str) -> None:
    try:
        multihash = Multihash.parse(text)
    except InvalidTextError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017 (both outcomes are fine, this one has to be precise)
        return
    assert len(multihash.digest) <= DIGEST_SIZE


# ---- In models


class Holder(BaseModel):
    multihash: Multihash


def test_models_hold_a_hash_as_text_or_bytes_and_write_text() -> None:
    value = sha3_256(b"multihash")
    for form in (value, HEX, BASE58, value.to_bytes()):
        assert Holder.model_validate({"multihash": form}).multihash == value
    assert Holder(multihash=value).model_dump(mode="json") == {"multihash": HEX}
    assert Holder.model_json_schema()["properties"]["multihash"]["format"] == "multihash"


@pytest.mark.parametrize("form", [5, None, "f16", b"\x16", ["f"]])
def test_models_refuse_what_is_no_hash(form: object) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate({"multihash": form})
