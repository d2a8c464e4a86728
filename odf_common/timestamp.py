"""Points in time as ODF writes them: UTC, to the nanosecond."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self

from odf_common.errors import InvalidTextError, MalformedBytesError
from odf_common.text_value import TextValue

NANOS_PER_SECOND = 1_000_000_000
SECONDS_PER_DAY = 86_400
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date.min.toordinal() - _EPOCH_DAY
_LAST_DAY = date.max.toordinal() - _EPOCH_DAY
_MINUTE = 60

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)


@dataclass(frozen=True, slots=True, order=True)
class Timestamp(TextValue):
    """Nanoseconds since 1970-01-01T00:00:00Z, between the years 1 and 9999. Text form: RFC 3339 with `Z`."""

    ns: int

    JSON_SCHEMA = {"type": "string", "format": "date-time"}

    def __post_init__(self) -> None:
        if not _FIRST_DAY <= self.ns // (NANOS_PER_SECOND * SECONDS_PER_DAY) <= _LAST_DAY:
            raise MalformedBytesError(f"{self.ns} ns since 1970 lies outside the years 1 to 9999")

    @classmethod
    def now(cls) -> Self:
        """The clock's time, to the microsecond. Only edges call it; the core takes time as an argument."""
        return cls.from_datetime(datetime.now(UTC))

    @classmethod
    def from_datetime(cls, moment: datetime) -> Self:
        """From an aware datetime."""
        if moment.tzinfo is None:
            raise ValueError("a timestamp needs a datetime with a time zone")
        return cls((moment - _EPOCH) // timedelta(microseconds=1) * 1000)

    @classmethod
    def from_ordinal(cls, year: int, ordinal_day: int, second: int, nanosecond: int) -> Self:
        """From the parts that a block carries: ordinal day counts from 1, `second` from midnight."""
        try:
            first = date(year, 1, 1).toordinal()
            days_in_year = date(year, 12, 31).toordinal() - first + 1
        except (ValueError, OverflowError) as error:
            raise MalformedBytesError(f"year {year} of a timestamp lies outside 1 to 9999") from error
        if not 1 <= ordinal_day <= days_in_year:
            raise MalformedBytesError(f"day {ordinal_day} of a timestamp does not exist in the year {year}")
        if not (0 <= second < SECONDS_PER_DAY and 0 <= nanosecond < NANOS_PER_SECOND):
            raise MalformedBytesError(f"second {second}, nanosecond {nanosecond} of a timestamp is not a time of day")
        days = first + ordinal_day - 1 - _EPOCH_DAY
        return cls((days * SECONDS_PER_DAY + second) * NANOS_PER_SECOND + nanosecond)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read RFC 3339 with any offset, up to 9 fraction digits."""
        match = _RFC3339.fullmatch(text)
        if match is None:
            raise InvalidTextError(
                "date-time", text, position=0, reason="expected RFC 3339, such as 2020-01-01T12:00:00.000Z"
            )
        year, month, day, hour, minute, second, fraction, _, sign, off_hour, off_minute = match.groups()
        if sign is not None and (int(off_hour) >= 24 or int(off_minute) >= _MINUTE):
            raise InvalidTextError("date-time", text, position=match.start(9), reason="no such offset from UTC")
        try:
            moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
            seconds = (moment - _EPOCH) // timedelta(seconds=1)
            if sign is not None:
                offset = (int(off_hour) * _MINUTE + int(off_minute)) * _MINUTE
                seconds += -offset if sign == "+" else offset
            return cls(seconds * NANOS_PER_SECOND + int((fraction or "0").ljust(9, "0")))
        except ValueError as error:
            raise InvalidTextError("date-time", text, position=0, reason=str(error)) from error

    def to_ordinal(self) -> tuple[int, int, int, int]:
        """Year, ordinal day from 1, seconds from midnight, nanoseconds."""
        seconds, nanosecond = divmod(self.ns, NANOS_PER_SECOND)
        days, second = divmod(seconds, SECONDS_PER_DAY)
        day = date.fromordinal(days + _EPOCH_DAY)
        return day.year, day.toordinal() - date(day.year, 1, 1).toordinal() + 1, second, nanosecond

    def to_datetime(self) -> datetime:
        """The same moment as an aware datetime, cut to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.ns // 1000)

    def truncated_to_ms(self) -> Self:
        """Cut to the millisecond, the resolution of data columns."""
        return type(self)(self.ns // 1_000_000 * 1_000_000)

    def plus_seconds(self, seconds: float) -> Self:
        """A later (or earlier) moment; MalformedBytesError when there is none."""
        if not math.isfinite(seconds * NANOS_PER_SECOND):
            raise MalformedBytesError(f"{seconds} is not a number of seconds that can be counted")
        return type(self)(self.ns + round(seconds * NANOS_PER_SECOND))

    def __str__(self) -> str:
        nanosecond = self.ns % NANOS_PER_SECOND
        whole = self.to_datetime().replace(microsecond=0, tzinfo=None).isoformat()
        return f"{whole}{_fraction(nanosecond)}Z"


def _fraction(nanosecond: int) -> str:
    """0, 3, 6 or 9 digits: the fewest that lose nothing."""
    if nanosecond == 0:
        return ""
    digits = f"{nanosecond:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}"
