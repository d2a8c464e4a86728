"""Points in time: RFC 3339 in, UTC out, to the nanosecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.errors import InvalidTextError, MalformedBytesError
from odf_common.timestamp import NANOS_PER_SECOND, Timestamp
from tests.strategies import examples, timestamps

FIRST = Timestamp.parse("0001-01-01T00:00:00Z")
LAST = Timestamp.parse("9999-12-31T23:59:59.999999999Z")


# ---- Text


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2020-01-01T12:00:00Z", 1_577_880_000_000_000_000),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1969-12-31T23:59:59Z", -NANOS_PER_SECOND),
        ("1900-03-01T00:00:00Z", -2_203_891_200_000_000_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000_000),
        ("9999-12-31T23:59:59.999999999Z", 253_402_300_799_999_999_999),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000_000),
    ],
)
def test_times_of_the_years_1_to_9999_are_read_and_written(text: str, ns: int) -> None:
    assert Timestamp.parse(text).ns == ns
    assert str(Timestamp(ns)) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2020-01-01T14:00:00+02:00", "2020-01-01T12:00:00Z"),
        ("2020-01-01T00:30:00-11:30", "2020-01-01T12:00:00Z"),
        ("2020-01-01T12:00:00+00:00", "2020-01-01T12:00:00Z"),
        ("2020-01-01T12:00:00-00:00", "2020-01-01T12:00:00Z"),
        ("2020-01-01t12:00:00z", "2020-01-01T12:00:00Z"),
        ("2020-01-01 12:00:00Z", "2020-01-01T12:00:00Z"),
        ("2021-01-01T00:30:00.5+01:00", "2020-12-31T23:30:00.500Z"),
        ("1970-01-01T00:00:00.25+00:01", "1969-12-31T23:59:00.250Z"),
        ("2020-01-01T23:59:00+23:59", "2020-01-01T00:00:00Z"),
    ],
)
def test_any_offset_is_read_and_utc_is_written(text: str, written: str) -> None:
    assert str(Timestamp.parse(text)) == written


@pytest.mark.parametrize(
    ("fraction", "written"),
    [
        ("", ""),
        (".0", ""),
        (".000000000", ""),
        (".1", ".100"),
        (".123", ".123"),
        (".1230", ".123"),
        (".1234", ".123400"),
        (".123456", ".123456"),
        (".123456000", ".123456"),
        (".1234567", ".123456700"),
        (".123456789", ".123456789"),
        (".000000001", ".000000001"),
        (".001", ".001"),
    ],
)
@pytest.mark.parametrize("day", ["2020-01-01T12:00:00", "1931-12-31T23:59:59"])
def test_the_fewest_of_0_3_6_or_9_digits_that_lose_nothing_are_written(day: str, fraction: str, written: str) -> None:
    assert str(Timestamp.parse(f"{day}{fraction}Z")) == f"{day}{written}Z"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2016-12-31T23:59:60Z", "second must be in"),
        ("2020-01-01T24:00:00Z", "hour must be in"),
        ("2020-01-01T12:60:00Z", "minute must be in"),
        ("2020-13-01T12:00:00Z", "month must be in"),
        ("2020-00-01T12:00:00Z", "month must be in"),
        ("2021-02-29T12:00:00Z", "day "),
        ("1900-02-29T12:00:00Z", "day "),
        ("0000-01-01T12:00:00Z", "year 0 is out of range"),
        ("0001-01-01T00:00:00+00:01", "outside the years 1 to 9999"),
        ("9999-12-31T23:59:59-00:01", "outside the years 1 to 9999"),
        ("2020-01-01T12:00:00+24:00", "no such offset"),
        ("2020-01-01T12:00:00+01:60", "no such offset"),
        ("2020-01-01T12:00:00", "expected RFC 3339"),
        ("2020-01-01", "expected RFC 3339"),
        ("2020-01-01T12:00Z", "expected RFC 3339"),
        ("2020-01-01T12:00:00.Z", "expected RFC 3339"),
        ("2020-01-01T12:00:00.1234567890Z", "expected RFC 3339"),
        ("2020-01-01T12:00:00,5Z", "expected RFC 3339"),
        ("2020-01-01T12:00:00+0100", "expected RFC 3339"),
        ("2020-01-01T12:00:00Z ", "expected RFC 3339"),
        ("2020-01-01T12:00:00Z\n", "expected RFC 3339"),
        ("12020-01-01T12:00:00Z", "expected RFC 3339"),
        ("-2020-01-01T12:00:00Z", "expected RFC 3339"),
        ("\u0662020-01-01T12:00:00Z", "expected RFC 3339"),
        ("", "expected RFC 3339"),
    ],
)
def test_what_is_no_time_of_the_calendar_in_rfc_3339_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        Timestamp.parse(text)
    assert caught.value.reason.startswith(reason) or reason in caught.value.reason


@examples(300)
@given(timestamps())
def test_text_keeps_every_nanosecond(timestamp: Timestamp) -> None:
    assert Timestamp.parse(str(timestamp)) == timestamp


@examples(300)
@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),
    st.integers(-1439, 1439),
    st.integers(0, 999),
)
def test_an_offset_means_what_datetime_takes_it_for(naive: datetime, minutes: int, nanosecond: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    whole = naive.replace(microsecond=0).isoformat()
    offset = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    text = f"{whole}.{naive.microsecond:06}{nanosecond:03}{offset}"
    assert Timestamp.parse(text).ns == Timestamp.from_datetime(moment).ns + nanosecond


@examples(300)
@given(st.text("0129-:.TZ+ ", max_size=32) | st.text(max_size=24))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        Timestamp.parse(text)
    except InvalidTextError as error:
        assert error.text == text  # noqa: PT017 (both outcomes are fine)


# ---- Order


@given(timestamps(), timestamps())
def test_times_sort_as_they_pass(one: Timestamp, other: Timestamp) -> None:
    assert (one < other) == (one.ns < other.ns)
    assert (one == other) == (one.ns == other.ns)
    assert sorted([one, other])[0].ns == min(one.ns, other.ns)


# ---- The parts that blocks carry


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2020-01-01T12:00:00Z", (2020, 1, 43_200, 0)),
        ("2020-12-31T23:59:59.999999999Z", (2020, 366, 86_399, 999_999_999)),
        ("1969-12-31T23:59:59.000000001Z", (1969, 365, 86_399, 1)),
        ("0001-01-01T00:00:00Z", (1, 1, 0, 0)),
        ("9999-12-31T00:00:00Z", (9999, 365, 0, 0)),
    ],
)
def test_a_time_is_a_year_a_day_a_second_and_a_nanosecond(text: str, parts: tuple[int, int, int, int]) -> None:
    assert Timestamp.parse(text).to_ordinal() == parts
    assert Timestamp.from_ordinal(*parts) == Timestamp.parse(text)


@examples(300)
@given(timestamps())
def test_the_parts_keep_every_nanosecond(timestamp: Timestamp) -> None:
    assert Timestamp.from_ordinal(*timestamp.to_ordinal()) == timestamp


@pytest.mark.parametrize(
    "parts",
    [
        *((0, 1, 0, 0), (-1, 1, 0, 0), (10_000, 1, 0, 0), (2**31 - 1, 1, 0, 0), (-(2**31), 1, 0, 0)),
        *((2020, 0, 0, 0), (2020, 367, 0, 0), (2021, 366, 0, 0), (2020, 65_535, 0, 0), (2020, -1, 0, 0)),
        *((2020, 1, 86_400, 0), (2020, 1, 2**32 - 1, 0), (2020, 1, -1, 0)),
        *((2020, 1, 0, NANOS_PER_SECOND), (2020, 1, 0, 2**32 - 1), (2020, 1, 0, -1)),
    ],
)
def test_parts_that_are_no_time_are_refused(parts: tuple[int, int, int, int]) -> None:
    with pytest.raises(MalformedBytesError):
        Timestamp.from_ordinal(*parts)


# ---- Numbers and datetimes


@pytest.mark.parametrize("ns", [FIRST.ns - 1, LAST.ns + 1, -(2**80), 2**80])
def test_times_outside_the_calendar_are_refused(ns: int) -> None:
    with pytest.raises(MalformedBytesError, match="outside the years 1 to 9999"):
        Timestamp(ns)


@examples(300)
@given(timestamps())
def test_a_datetime_is_the_time_cut_to_the_microsecond(timestamp: Timestamp) -> None:
    moment = timestamp.to_datetime()
    assert moment.utcoffset() == timedelta(0)
    assert Timestamp.from_datetime(moment).ns == timestamp.ns // 1000 * 1000


def test_a_datetime_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Timestamp.from_datetime(datetime(2020, 1, 1))


def test_data_columns_are_cut_to_the_millisecond_below() -> None:
    assert str(Timestamp.parse("2020-01-01T00:00:00.123999Z").truncated_to_ms()) == "2020-01-01T00:00:00.123Z"
    assert str(Timestamp.parse("1969-12-31T23:59:59.999999999Z").truncated_to_ms()) == "1969-12-31T23:59:59.999Z"


def test_seconds_can_be_added_and_taken_away() -> None:
    noon = Timestamp.parse("2020-01-01T12:00:00Z")
    assert str(noon.plus_seconds(0.001)) == "2020-01-01T12:00:00.001Z"
    assert str(noon.plus_seconds(-43_201)) == "2019-12-31T23:59:59Z"
    with pytest.raises(MalformedBytesError):
        LAST.plus_seconds(1)


def test_the_clock_tells_the_present() -> None:
    before = datetime.now(UTC)
    now = Timestamp.now().to_datetime()
    assert before <= now <= datetime.now(UTC)
