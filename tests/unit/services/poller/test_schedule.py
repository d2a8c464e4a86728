from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from odf_common.catalog.records import SourceSettings
from services.poller.schedule import next_poll, retry_after_s
from services.poller.status import PollStatus

NOON = datetime(2024, 5, 1, 12, 0, 30, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def a_status(**more: Any) -> PollStatus:
    return PollStatus(**({"started": NOON, "finished": NOON + minutes(1), "result": "sent", "detail": "x"} | more))


def test_by_hand_only() -> None:
    assert next_poll(SourceSettings(), None, known_since=NOON) is None


EVERY = SourceSettings(poll_every_s=600)
HOURLY = SourceSettings(poll_cron="0 * * * *")


@pytest.mark.parametrize(
    ("settings", "last", "expected"),
    [
        (EVERY, None, NOON),
        (EVERY, a_status(), NOON + minutes(10)),
        (EVERY, a_status(has_more=True), NOON + minutes(1)),
        (EVERY, a_status(failures=1, result="failed"), NOON + minutes(1.25)),
        (EVERY, a_status(failures=3, result="failed"), NOON + minutes(2)),
        (HOURLY, None, NOON.replace(hour=13, minute=0, second=0)),
        (HOURLY, a_status(), NOON.replace(hour=13, minute=0, second=0)),
        (
            HOURLY,
            a_status(started=NOON - timedelta(days=3)),
            NOON.replace(day=28, month=4, hour=13, minute=0, second=0),
        ),
        (SourceSettings(poll_cron="broken"), None, None),
    ],
)
def test_the_next_poll(settings: SourceSettings, last: PollStatus | None, expected: datetime | None) -> None:
    assert next_poll(settings, last, known_since=NOON) == expected


def test_retries_become_rare() -> None:
    assert [retry_after_s(failures) for failures in (1, 2, 3, 8, 9, 1000)] == [15, 30, 60, 1920, 3600, 3600]
