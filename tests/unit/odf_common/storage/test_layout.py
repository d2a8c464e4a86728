from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from multiformats import multibase

from odf_common.errors import CorruptedError, InvalidTextError
from odf_common.identity.multihash import Multihash
from odf_common.storage.layout import (
    check_ref_name,
    hash_of_name,
    is_ref_name,
    other_spellings,
    parse_ref_content,
    ref_content,
)

HASHES = st.builds(Multihash, st.sampled_from([0x00, 0x12, 0x16]), st.binary(min_size=32, max_size=32))


@given(HASHES)
def test_the_spellings_are_those_of_the_multibase_table(object_hash: Multihash) -> None:
    encodings = ("base16upper", "base58btc", "base64url")
    expected = tuple(multibase.encode(object_hash.to_bytes(), encoding) for encoding in encodings)
    assert other_spellings(object_hash) == expected
    assert {hash_of_name(name) for name in expected} == {object_hash}


@given(HASHES)
def test_a_ref_file_is_read_back(target: Multihash) -> None:
    assert parse_ref_content("head", ref_content(target)) == target


@given(st.binary(max_size=80))
def test_no_other_file_is_taken_for_a_ref(content: bytes) -> None:
    with suppress(CorruptedError):
        assert ref_content(parse_ref_content("head", content)) == content


@given(st.text(alphabet="aZ0._-/\\ \n\0é", max_size=12))
def test_an_accepted_ref_name_is_a_harmless_path(name: str) -> None:
    with suppress(InvalidTextError):
        check_ref_name(name)
        assert ".." not in name
        assert all(part and part[0].isalnum() and part.isascii() for part in name.split("/"))


def test_a_ref_name_has_a_limit() -> None:
    assert is_ref_name("a" * 200)
    assert not is_ref_name("a" * 201)
