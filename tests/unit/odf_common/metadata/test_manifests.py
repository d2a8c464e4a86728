from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from odf_common.metadata.base import Model
from odf_common.metadata.manifests import (
    MANIFEST_MODELS,
    DatasetSnapshot,
    DatasetSnapshotManifest,
    MetadataBlock,
    MetadataBlockManifest,
    MetadataEventManifest,
)
from tests.strategies import blocks, event_models, examples, models

AN_EVENT: dict[str, Any] = {"kind": "SetInfo", "keywords": ["a"]}
A_SNAPSHOT: dict[str, Any] = {"name": "account/name", "kind": "Root", "metadata": [AN_EVENT]}


@pytest.mark.parametrize("event", event_models(), ids=lambda event: event.__name__)
def test_a_block_survives_its_text_form(event: type[Model]) -> None:
    @examples(30)
    @given(blocks(models(event)))
    def survives(written: MetadataBlock) -> None:
        assert MetadataBlock.model_validate(written.to_document(), by_alias=True, by_name=False) == written

    survives()


@examples(30)
@given(models(DatasetSnapshot))
def test_a_snapshot_survives_its_text_form(written: DatasetSnapshot) -> None:
    assert DatasetSnapshot.model_validate(written.to_document(), by_alias=True, by_name=False) == written


class TestManifests:
    @pytest.mark.parametrize("model", MANIFEST_MODELS)
    def test_a_manifest_has_a_kind_a_version_and_a_content(self, model: type[Model]) -> None:
        assert list(model.model_fields) == ["kind", "version", "content"]

    def test_a_block_is_of_version_2_or_3(self) -> None:
        block = {"systemTime": "2020-01-01T12:00:00Z", "sequenceNumber": 0, "event": AN_EVENT}
        for version in (2, 3):
            document = {"kind": "MetadataBlock", "version": version, "content": block}
            manifest = MetadataBlockManifest.model_validate(document, by_alias=True, by_name=False)
            assert manifest.to_document() == document
        for odd in (0, 1, 4, True, 2.0, "2", None):
            with pytest.raises(ValidationError):
                MetadataBlockManifest.model_validate(
                    {"kind": "MetadataBlock", "version": odd, "content": block}, by_alias=True, by_name=False
                )

    @pytest.mark.parametrize(
        ("model", "content"), [(MetadataEventManifest, AN_EVENT), (DatasetSnapshotManifest, A_SNAPSHOT)]
    )
    def test_events_and_snapshots_are_of_version_1(self, model: type[Model], content: Any) -> None:
        kind = model.__name__.removesuffix("Manifest")
        document = {"kind": kind, "version": 1, "content": content}
        assert model.model_validate(document, by_alias=True, by_name=False).to_document() == document
        for version in (0, 2, True, 1.0, "1", None):
            with pytest.raises(ValidationError):
                model.model_validate(document | {"version": version}, by_alias=True, by_name=False)

    def test_the_kind_of_a_manifest_has_one_spelling(self) -> None:
        for kind in ("metadataEvent", "metadataevent", "MetadataBlock", None, 1):
            with pytest.raises(ValidationError):
                MetadataEventManifest.model_validate(
                    {"kind": kind, "version": 1, "content": AN_EVENT}, by_alias=True, by_name=False
                )

    def test_unknown_keys_are_refused(self) -> None:
        with pytest.raises(ValidationError):
            MetadataEventManifest.model_validate(
                {"kind": "MetadataEvent", "version": 1, "content": AN_EVENT, "more": 1}, by_alias=True, by_name=False
            )

    def test_a_snapshot_is_named_by_an_alias(self) -> None:
        for name in ("", "a/b/c", "no_name", 1):
            with pytest.raises(ValidationError):
                DatasetSnapshot.model_validate(A_SNAPSHOT | {"name": name}, by_alias=True, by_name=False)
