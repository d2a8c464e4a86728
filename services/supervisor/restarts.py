"""Whether, and how soon, a service that ended is started again."""

from __future__ import annotations

from dataclasses import dataclass

from odf_common.service_process import DO_NOT_RESTART

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
WELL_AFTER_S = 60.0
"""Who lived this long has got over what made it fail before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Start it again after a while; `failures` counts those without a long life between them."""

    delay_s: float
    failures: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Leave it."""


def after_exit(code: int, *, lived_s: float, failures: int) -> Restart | GiveUp:
    """What to do about a child that ended without having been told to."""
    if code == DO_NOT_RESTART:
        return GiveUp()
    failures = 0 if lived_s >= WELL_AFTER_S else failures
    return Restart(delay_s=min(FIRST_DELAY_S * 2.0**failures, LONGEST_DELAY_S), failures=failures + 1)
