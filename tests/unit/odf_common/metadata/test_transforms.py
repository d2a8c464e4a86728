from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from odf_common.identity.did import DatasetId
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.transforms import TransformInput

AN_ID = "did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6"


def read(ref: Any) -> TransformInput:
    return TransformInput.model_validate({"datasetRef": ref}, by_alias=True, by_name=False)


def test_an_input_is_an_id_or_an_alias() -> None:
    assert read(AN_ID).dataset_ref == DatasetId.parse(AN_ID)
    assert read("account/some.name").dataset_ref == DatasetAlias.parse("account/some.name")


@pytest.mark.parametrize("text", [AN_ID, "name", "account/name", "repo/account/name", "https://example.org/odf/x/"])
def test_a_reference_is_written_as_it_was_read(text: str) -> None:
    assert read(text).to_document() == {"datasetRef": text}


@pytest.mark.parametrize("odd", ["", "no_name", "did:odf:nothing", "a//b", 5, None, [], {"id": AN_ID}, b"name"])
def test_anything_else_is_refused(odd: Any) -> None:
    with pytest.raises(ValidationError):
        read(odd)
