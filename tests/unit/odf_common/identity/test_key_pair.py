"""Key pairs, and the files that keep them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from Crypto.PublicKey import ECC, RSA
from hypothesis import given
from hypothesis import strategies as st

from odf_common.errors import MalformedBytesError
from odf_common.identity.key_pair import KeyPair
from tests.strategies import examples

# RFC 8032, section 7.1, tests 1 to 3.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    ),
]
SEED, PUBLIC = VECTORS[0]


@pytest.mark.parametrize(("seed", "public"), VECTORS)
def test_the_public_key_is_that_of_rfc_8032(seed: str, public: str) -> None:
    assert KeyPair.from_seed(bytes.fromhex(seed)).public_key.hex() == public


def test_the_public_key_is_the_name_of_the_dataset() -> None:
    assert str(KeyPair.from_seed(bytes.fromhex(SEED)).dataset_id) == f"did:odf:fed01{PUBLIC}"


def test_every_new_key_pair_is_another() -> None:
    assert len({KeyPair.generate().public_key for _ in range(10)}) == 10


def test_a_key_pair_does_not_show_its_private_key() -> None:
    pair = KeyPair.from_seed(bytes.fromhex(SEED))
    assert repr(pair) == str(pair) == "KeyPair()"


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_seed_has_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match=r"[Ll]ength|size|32"):
        KeyPair.from_seed(bytes(size))


# ---- Files


def test_a_saved_key_pair_is_loaded_as_the_same(tmp_path: Path) -> None:
    pair = KeyPair.generate()
    pair.save(tmp_path / "key.pem")
    assert KeyPair.load(tmp_path / "key.pem") == pair
    assert KeyPair.load(tmp_path / "key.pem").public_key == pair.public_key


def test_a_key_file_is_pkcs8_in_pem(tmp_path: Path) -> None:
    KeyPair.from_seed(bytes.fromhex(SEED)).save(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").read_text() == (
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
        "-----END PRIVATE KEY-----\n"
    )


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_only_its_owner_may_read_a_key_file_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        KeyPair.generate().save(tmp_path / "key.pem")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    KeyPair.generate().save(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        KeyPair.generate().save(path)
    assert path.read_bytes() == before


def test_a_key_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "key.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        KeyPair.generate().save(tmp_path / "key.pem")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_not_there_is_not_a_malformed_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KeyPair.load(tmp_path / "key.pem")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\0", b"secret words\n", b"\xff\xfe", b"0" * 100, b"-----BEGIN PRIVATE KEY-----\n"),
        b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n",
        b"ssh-ed25519 AAAA secret",
        b"ecdsa-sha2-nistp256 AAAA secret",
    ],
)
def test_a_file_that_holds_no_key_is_refused_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with pytest.raises(MalformedBytesError, match="is not a PEM key file") as caught:
        KeyPair.load(path)
    assert str(caught.value) == f"{path} is not a PEM key file"


def test_keys_of_another_kind_are_refused(tmp_path: Path) -> None:
    others = {
        "p256": ECC.generate(curve="p256").export_key(format="PEM"),
        "ed448": ECC.generate(curve="Ed448").export_key(format="PEM"),
        "x25519": ECC.generate(curve="Curve25519").export_key(format="PEM"),
        "public": ECC.generate(curve="Ed25519").public_key().export_key(format="PEM"),
        "rsa": RSA.generate(1024).export_key().decode(),
    }
    for name, pem in others.items():
        path = tmp_path / name
        path.write_text(pem)
        with pytest.raises(MalformedBytesError):
            KeyPair.load(path)


def test_a_key_under_a_passphrase_is_refused(tmp_path: Path) -> None:
    key = ECC.generate(curve="Ed25519")
    pem = key.export_key(
        format="PEM", passphrase="words", use_pkcs8=True, protection="PBKDF2WithHMAC-SHA1AndAES128-CBC"
    )
    (tmp_path / "key.pem").write_text(pem)
    with pytest.raises(MalformedBytesError):
        KeyPair.load(tmp_path / "key.pem")


_PEM = KeyPair.from_seed(bytes.fromhex(SEED))._key.export_key(format="PEM").encode()
_DER = KeyPair.from_seed(bytes.fromhex(SEED))._key.export_key(format="DER")


def _damaged(content: bytes, at: int, junk: bytes, skipped: int) -> bytes:
    at %= len(content)
    return content[:at] + junk + content[at + skipped :]


@examples(200)
@given(
    st.builds(_damaged, st.sampled_from([_PEM, _DER]), st.integers(0, 200), st.binary(max_size=4), st.integers(0, 4))
    | st.binary(max_size=60)
)
def test_a_damaged_key_file_is_refused_or_still_a_key(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.pem"
    path.write_bytes(content)
    try:
        pair = KeyPair.load(path)
    except MalformedBytesError:
        return
    assert len(pair.public_key) == 32
