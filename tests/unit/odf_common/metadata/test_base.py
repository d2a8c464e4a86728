from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from odf_common.metadata.base import MAX_EXTRA_DEPTH, MAX_EXTRA_SIZE, ExtraAttributes
from odf_common.metadata.events import AddData
from tests.strategies import examples, json_values, texts


def nested(levels: int) -> dict[str, Any]:
    """A map with lists in lists, so many maps and lists in all."""
    inner: list[Any] = []
    for _ in range(levels - 2):
        inner = [inner]
    return {"a": inner}


class TestExtraAttributes:
    def test_they_are_written_compact_with_keys_sorted_at_every_level(self) -> None:
        extra = ExtraAttributes.of({"b": [{"d": 1, "c": None}], "a": "ü", "B": 0.5})
        assert extra.entries == '{"B":0.5,"a":"ü","b":[{"c":null,"d":1}]}'

    @examples(100)
    @given(st.dictionaries(texts(), json_values(), max_size=3))
    def test_any_json_comes_back(self, attributes: dict[str, Any]) -> None:
        extra = ExtraAttributes.of(attributes)
        assert extra.attributes == attributes
        event = AddData.model_validate({"kind": "AddData", "extra": attributes}, by_alias=True, by_name=False)
        assert event.extra == extra
        assert json.loads(json.dumps(event.to_document()["extra"])) == attributes

    def test_nulls_within_them_are_kept(self) -> None:
        document = {"kind": "AddData", "extra": {"a": None, "b": [None, {"c": None}]}}
        assert AddData.model_validate(document, by_alias=True, by_name=False).to_document() == document

    @pytest.mark.parametrize(
        "attributes",
        [
            {1: "a"},
            {None: "a"},
            {"a": {True: 1}},
            {"a": float("nan")},
            {"a": float("-inf")},
            {"a": (1, 2)},
            {"a": {1, 2}},
            {"a": b"bytes"},
            {"a": object()},
            {"a": "\ud800"},
            {"\udfff": 1},
            {"a": 10**5000},
        ],
    )
    def test_what_json_cannot_say_is_refused(self, attributes: Any) -> None:
        with pytest.raises(ValueError):  # noqa: PT011
            ExtraAttributes.of(attributes)
        with pytest.raises(ValidationError):
            AddData.model_validate({"kind": "AddData", "extra": attributes}, by_alias=True, by_name=False)

    @pytest.mark.parametrize("odd", ["{}", [], 1, True])
    def test_they_are_a_map(self, odd: Any) -> None:
        with pytest.raises(ValidationError, match="expected a map of attributes"):
            AddData.model_validate({"kind": "AddData", "extra": odd}, by_alias=True, by_name=False)

    def test_their_depth_is_bounded(self) -> None:
        deepest = nested(MAX_EXTRA_DEPTH)
        assert AddData(extra=ExtraAttributes.of(deepest)).to_document()["extra"] == deepest
        for levels in (MAX_EXTRA_DEPTH + 1, 500, 100_000):
            with pytest.raises(ValueError, match="nested deeper"):
                ExtraAttributes.of(nested(levels))

    def test_a_map_within_itself_is_refused(self) -> None:
        attributes: dict[str, Any] = {}
        attributes["a"] = attributes
        with pytest.raises(ValueError, match="Circular"):
            ExtraAttributes.of(attributes)

    def test_their_size_is_bounded(self) -> None:
        around = len('{"a":""}')
        assert ExtraAttributes.of({"a": "x" * (MAX_EXTRA_SIZE - around)})
        with pytest.raises(ValueError, match="longer"):
            ExtraAttributes.of({"a": "x" * (MAX_EXTRA_SIZE - around + 1)})

    @pytest.mark.parametrize("entries", ["", "[]", "null", "{", '{"a":NaN}', '{"a":1e400}', r'{"a":"\ud800"}'])
    def test_a_text_that_is_not_a_json_object_is_refused(self, entries: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011
            ExtraAttributes(entries)

    def test_a_foreign_spelling_is_kept(self) -> None:
        extra = ExtraAttributes('{ "b": 1.50, "a": "\\u00fc" }')
        assert extra.entries == '{ "b": 1.50, "a": "\\u00fc" }'
        assert extra.attributes == {"a": "ü", "b": 1.5}
