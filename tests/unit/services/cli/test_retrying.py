from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from odf_common.catalog.records import PushSourceBinding
from odf_common.identity.key_pair import KeyPair
from odf_common.messages.dead_letter import DeadLetterNote
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import MergeStrategyAppend, ReadStepNdJson
from odf_common.timestamp import Timestamp
from services.cli.dead_letter_topic import DeadLetter, Place
from services.cli.retrying import Outcome, _Retry

TIME = Timestamp.parse("2024-05-01T12:00:00Z")
LETTER = DeadLetter(
    DeadLetterNote(
        dataset_id=KeyPair.generate().dataset_id,
        source_name="sensors",
        topic="t",
        topic_id="T",
        partition=0,
        offset=7,
        index=1,
        timestamp=TIME,
        code="WrongType",
        reason="x",
        time=TIME,
    ),
    b"{}",
)


def outcomes_of(letter: DeadLetter, dead: set[Place]) -> tuple[int, list[Outcome]]:
    """How many messages are sent, and what became of letters that are not."""
    source = AddPushSource(source_name="sensors", read=ReadStepNdJson(), merge=MergeStrategyAppend())
    retry = _Retry("", cast(PushSourceBinding, None), source, lambda: dead)
    return len(list(retry._messages([letter], lambda *_: None))), retry._refused


def test_a_letter_is_sent() -> None:
    assert outcomes_of(LETTER, set()) == (1, [])


@pytest.mark.parametrize(("dead", "state"), [(set(), "duplicate"), ({("T", 0, 9)}, "refused")])
def test_a_letter_that_was_sent_before_is_not_sent_twice(dead: set[Place], state: str) -> None:
    count, (outcome,) = outcomes_of(replace(LETTER, attempts=1, sent_as=("T", 0, 9)), dead)
    assert (count, outcome.state, outcome.is_failure) == (0, state, state == "refused")
    assert "sent again" in outcome.text
    assert "0:9" in outcome.text
