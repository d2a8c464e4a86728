"""When a dataset is polled next."""

from __future__ import annotations

from datetime import datetime, timedelta

from cronsim import CronSim, CronSimError

from odf_common.catalog.records import SourceSettings
from services.poller.status import PollStatus

_FIRST_RETRY_S = 15.0
_LAST_RETRY_S = 3_600.0


def next_poll(settings: SourceSettings, last: PollStatus | None, *, known_since: datetime) -> datetime | None:
    """The time of the next poll, which may be over; None for a dataset that is polled by hand only.

    What was missed while nobody polled is made up for once.
    """
    if settings.poll_every_s is None and settings.poll_cron is None:
        return None
    if last is not None and last.failures:
        return last.finished + timedelta(seconds=retry_after_s(last.failures))
    if last is not None and last.has_more:
        return last.finished
    if settings.poll_every_s is not None:
        return known_since if last is None else last.started + timedelta(seconds=settings.poll_every_s)
    assert settings.poll_cron is not None
    return _next(settings.poll_cron, known_since if last is None else last.started)


def retry_after_s(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    return float(min(_FIRST_RETRY_S * 2 ** min(failures - 1, 32), _LAST_RETRY_S))


def _next(expression: str, after: datetime) -> datetime | None:
    try:
        return next(CronSim(expression, after), None)
    except CronSimError:
        return None
