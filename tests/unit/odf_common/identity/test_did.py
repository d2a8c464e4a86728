"""Public keys as names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.errors import InvalidTextError, MalformedBytesError
from odf_common.identity.did import AccountId, DatasetId
from tests.strategies import dataset_ids, examples
from tests.unit.odf_common.identity.encoders import ENCODERS

DID_ODF = "did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6"
DID_KEY = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"


# ---- Vectors


def test_a_dataset_id_is_the_same_key_as_its_did_key() -> None:
    dataset_id = DatasetId.parse(DID_ODF)
    assert dataset_id.to_did_key() == DID_KEY
    assert DatasetId.from_did_key(DID_KEY) == dataset_id
    assert str(DatasetId.from_did_key(DID_KEY)) == DID_ODF


def test_the_binary_form_is_the_codec_and_the_key() -> None:
    dataset_id = DatasetId.parse(DID_ODF)
    assert dataset_id.to_bytes().hex() == DID_ODF.removeprefix("did:odf:f")
    assert dataset_id.public_key == dataset_id.to_bytes()[2:]
    assert DatasetId.from_bytes(dataset_id.to_bytes()) == dataset_id


def test_the_folder_of_a_dataset_is_its_id_without_the_scheme() -> None:
    assert DatasetId.parse(DID_ODF).multibase == DID_ODF.removeprefix("did:odf:")


# ---- Any


@pytest.mark.parametrize("prefix", ENCODERS)
@examples(50)
@given(dataset_ids())
def test_an_id_is_read_in_every_encoding(prefix: str, dataset_id: DatasetId) -> None:
    assert DatasetId.parse("did:odf:" + prefix + ENCODERS[prefix](dataset_id.to_bytes())) == dataset_id


def test_the_id_of_an_account_is_not_that_of_a_dataset() -> None:
    key = bytes(32)
    assert len({AccountId(key), DatasetId(key)}) == 2
    assert str(AccountId(key)) == str(DatasetId(key))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("fed01" + "00" * 32, 0),
        ("DID:ODF:fed01" + "00" * 32, 0),
        (" did:odf:fed01" + "00" * 32, 0),
        (DID_KEY, 0),
        ("did:odf:", 8),
        ("did:odf:ked01", 8),
        ("did:odf:fed0", 12),
        ("did:odf:fed0100", 8),
        ("did:odf:fed01" + "00" * 31, 8),
        ("did:odf:fed01" + "00" * 33, 8),
        ("did:odf:fed02" + "00" * 32, 8),
        ("did:odf:f1620" + "00" * 32, 8),
        ("did:odf:fed01" + "0g" * 32, 14),
        ("did:odf:fed01" + "00" * 32 + "\n", 77),
        ("did:odf:fed01" + "00" * 32 + "/x", 77),
        ("did:odf:z" + "1" * 600, 520),
    ],
)
def test_a_text_that_is_no_id_is_refused_where_it_goes_wrong(text: str, position: int) -> None:
    with pytest.raises(InvalidTextError) as caught:
        DatasetId.parse(text)
    assert caught.value.position == position
    assert caught.value.text == text


def test_a_did_key_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidTextError, match="it does not start with 'did:key:'"):
        DatasetId.from_did_key(DID_ODF)
    with pytest.raises(InvalidTextError, match="not an Ed25519 identity"):
        DatasetId.from_did_key("did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme")


@given(st.binary(max_size=40) | st.binary(max_size=40).map(b"\xed\x01".__add__))
def test_any_bytes_are_an_id_or_refused(data: bytes) -> None:
    try:
        dataset_id = DatasetId.from_bytes(data)
    except MalformedBytesError:
        return
    assert dataset_id.to_bytes() == data
