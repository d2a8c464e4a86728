"""The strategies that other tests stand on leave nothing out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, seed

from odf_common.metadata.base import Model
from odf_common.metadata.manifests import MetadataBlock
from tests.strategies import blocks, event_models, examples, models, reachable
from tests.unit.odf_common.metadata.documents import full_blocks

State = tuple[type[Model], str, bool]
"""A field of a model, and whether it is present."""


def states(value: Any) -> set[State]:
    """Of all fields within a value."""
    if isinstance(value, tuple):
        return set().union(*map(states, value))
    if not isinstance(value, Model):
        return set()
    items = [(name, getattr(value, name)) for name in type(value).model_fields]
    return {(type(value), name, item is not None) for name, item in items}.union(*(states(item) for _, item in items))


def expected_states() -> set[State]:
    fields = (
        (model, name, field)
        for model in reachable(MetadataBlock)
        if issubclass(model, Model)
        for name, field in model.model_fields.items()
    )
    return {
        (model, name, present)
        for model, name, field in fields
        for present in ({True, False} if field.default is None else {True})
    }


_ROUNDS = 5


@pytest.mark.slow
def test_every_field_is_made_and_every_optional_one_left_out() -> None:
    made: set[State] = set()
    # What is made depends on all code that there is, so some rounds may be needed for the rarest states.
    for number in range(_ROUNDS):
        for event in event_models():

            @seed(number)
            @examples(300)
            @given(blocks(models(event)))
            def collect(block: MetadataBlock) -> None:
                made.update(states(block))

            collect()
        if made == expected_states():
            break
    assert made == expected_states()


def test_the_full_documents_have_every_field() -> None:
    made = set().union(*map(states, full_blocks().values()))
    assert {state for state in expected_states() if state[2]} <= made
