from __future__ import annotations

from odf_common.service_process import DO_NOT_RESTART
from services.supervisor.restarts import LONGEST_DELAY_S, WELL_AFTER_S, GiveUp, Restart, after_exit


def test_delays_double_up_to_a_limit() -> None:
    failures, delays = 0, []
    for _ in range(9):
        decision = after_exit(1, lived_s=0.1, failures=failures)
        assert isinstance(decision, Restart)
        failures = decision.failures
        delays.append(decision.delay_s)
    assert delays == [0.5, 1, 2, 4, 8, 16, LONGEST_DELAY_S, LONGEST_DELAY_S, LONGEST_DELAY_S]


def test_who_was_well_for_a_while_is_started_soon_again() -> None:
    assert after_exit(-9, lived_s=WELL_AFTER_S, failures=7) == Restart(delay_s=0.5, failures=1)


def test_an_end_that_nobody_asked_for_is_a_failure_also_without_an_error() -> None:
    assert isinstance(after_exit(0, lived_s=1, failures=0), Restart)


def test_a_child_can_say_that_another_try_will_not_help() -> None:
    assert after_exit(DO_NOT_RESTART, lived_s=1e6, failures=0) == GiveUp()
