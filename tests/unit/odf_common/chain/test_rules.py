from __future__ import annotations

import pytest

from odf_common.chain import rules
from odf_common.chain.rules import APPEND_RULES, AppendRule, check_append
from odf_common.errors import AppendRefusedError, OdfError
from tests.unit.odf_common.chain.cases import CASES, Case


def outcome(case: Case, applied: tuple[AppendRule, ...]) -> type[OdfError] | None:
    try:
        for rule in applied:
            rule(case.chain, case.block)
    except OdfError as error:
        return type(error)
    return None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_block_is_accepted_or_refused_as_the_facts_say(case: Case) -> None:
    if case.refusal is None:
        check_append(case.chain, case.block)
        return
    with pytest.raises(AppendRefusedError) as refused:
        check_append(case.chain, case.block)
    assert type(refused.value) is case.refusal


@pytest.mark.parametrize("removed", APPEND_RULES, ids=lambda rule: rule.__name__)
def test_removing_any_single_rule_changes_an_outcome(removed: AppendRule) -> None:
    left = tuple(rule for rule in APPEND_RULES if rule is not removed)
    assert any(outcome(case, left) is not case.refusal for case in CASES)


def test_every_rule_of_the_module_is_in_the_list() -> None:
    public = {
        value
        for name, value in vars(rules).items()
        if callable(value) and getattr(value, "__module__", "") == rules.__name__ and not name.startswith("_")
    }
    assert public - {check_append} == set(APPEND_RULES)


def test_every_error_names_itself_as_the_facts_do() -> None:
    codes = {case.refusal.code for case in CASES if case.refusal is not None}
    assert codes == {
        "FirstBlockMustBeSeed",
        "AppendingSeedBlockToNonEmptyChain",
        "SequenceIntegrity",
        "PrevBlockNotFound",
        "SystemTimeIsNotMonotonic",
        "WatermarkIsNotMonotonic",
        "OffsetsAreNotSequential",
        "InvalidEvent",
        "EmptyEvent",
        "NoOpEvent",
    }
