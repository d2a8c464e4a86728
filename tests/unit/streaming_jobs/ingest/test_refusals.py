from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.errors import StoreUnavailableError
from odf_common.ingest.errors import IncompatibleSchemaError
from streaming_jobs.ingest.refusals import find_refused
from tests.unit.streaming_jobs.ingest.builders import messages


class Attempts:
    def __init__(self, *bad: bytes) -> None:
        self.bad = bad
        self.count = 0

    def __call__(self, some: pa.Table) -> None:
        self.count += 1
        if not set(self.bad).isdisjoint(some["value"].to_pylist()):
            raise IncompatibleSchemaError("it does not fit")


def never() -> bool:
    return False


@given(st.lists(st.booleans(), max_size=40))
def test_exactly_those_that_are_refused_are_found(bad: list[bool]) -> None:
    values = [b"bad" if each else b"good" for each in bad]
    found = find_refused(messages(*values), Attempts(b"bad"), is_closed=never)
    assert sorted(found) == [row for row, each in enumerate(bad) if each]
    assert {problem.code for problem in found.values()} <= {"IncompatibleSchema"}


def test_one_among_many_costs_few_attempts() -> None:
    attempt = Attempts(b"bad")
    values = [b"good"] * 10_000
    values[4_321] = b"bad"
    assert list(find_refused(messages(*values), attempt, is_closed=never)) == [4_321]
    assert attempt.count < 40


def test_what_is_not_about_the_messages_costs_one_attempt() -> None:
    asked = []

    def attempt(some: pa.Table) -> None:
        asked.append(some.num_rows)
        raise IncompatibleSchemaError("the source narrows a column")

    assert len(find_refused(messages(*[b"a"] * 1_000), attempt, is_closed=never)) == 1_000
    assert asked == [0]


def test_a_run_that_is_over_looks_no_further() -> None:
    with pytest.raises(StoreUnavailableError, match="the run is over"):
        find_refused(messages(b"bad"), Attempts(b"bad"), is_closed=lambda: True)
