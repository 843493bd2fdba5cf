"""Dates and times as counts from the epoch."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SpecError
from app.iceberg import datetimes as dt
from app.iceberg.datetimes import MOST_EPOCH_MS, check_epoch_ms

ANY_DAYS = st.integers(-365_000_000_000, 365_000_000_000)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(ANY_DAYS)
def test_the_calendar_runs_both_ways(days: int) -> None:
    """Days to civil date and back is the identity far beyond Python's own years."""
    assert dt.days_from_civil(*dt.civil_from_days(days)) == days


@given(st.dates())
def test_the_calendar_agrees_with_python(day: date) -> None:
    """Within years 1 to 9999 the standard library is the oracle."""
    days = (day - date(1970, 1, 1)).days
    assert dt.days_from_civil(day.year, day.month, day.day) == days
    assert dt.civil_from_days(days) == (day.year, day.month, day.day)
    assert dt.format_date(days) == day.isoformat()
    assert dt.parse_date(day.isoformat()) == days


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_date_of_the_format_has_a_text(days: int) -> None:
    """All 32-bit days print and read back, years beyond 9999 with their sign."""
    assert dt.parse_date(dt.format_date(days)) == days


@given(st.times())
def test_times_read_back(moment: time) -> None:
    """Microseconds and nanoseconds of a day print and read back."""
    micros = ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond
    assert dt.parse_time(moment.isoformat()) == micros * 1000
    assert dt.parse_time(dt.format_time(micros, digits=6)) == micros * 1000
    assert dt.parse_time(dt.format_time(micros * 1000 + 7, digits=9)) == micros * 1000 + 7


@given(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.sampled_from([6, 9]))
def test_every_timestamp_of_the_format_has_a_text(count: int, zoned: bool, digits: int) -> None:
    """All 64-bit counts print and read back, with and without zone."""
    text = dt.format_timestamp(count, digits=digits, zoned=zoned)
    assert dt.parse_timestamp(text, zoned=zoned) == count * 10 ** (9 - digits)
    assert dt.parse_timestamp(text, zoned=not zoned) is None


@given(st.datetimes(timezones=st.just(UTC)))
def test_timestamps_agree_with_python(moment: datetime) -> None:
    """Within years 1 to 9999 the standard library is the oracle."""
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    assert dt.parse_timestamp(moment.isoformat(), zoned=True) == micros * 1000


@pytest.mark.parametrize(
    "text",
    [
        "2017-13-01", "2017-00-01", "2017-02-29", "1900-02-29", "2017-04-31", "2017-1-1", "17-01-01", "12345-01-01",
        "+2017-01-01", "-0000-01-01", "2017-01-01 ", " 2017-01-01", "2017-01-01T00:00", "20170101", "", "٢٠١٧-01-01",
    ],
)  # fmt: skip
def test_what_is_no_date_is_refused(text: str) -> None:
    """Days outside their month, missing signs, blanks and foreign digits are no dates."""
    assert dt.parse_date(text) is None


@pytest.mark.parametrize("text", ["2000-02-29", "2016-02-29", "+12345-01-01", "-0001-12-31", "0000-01-01"])
def test_leap_days_and_signed_years_are_dates(text: str) -> None:
    """Leap years follow the Gregorian rule, signs follow ISO."""
    days = dt.parse_date(text)
    assert days is not None
    assert dt.format_date(days) == text


@pytest.mark.parametrize("text", ["24:00:00", "12:60", "12:00:60", "1:00", "12", "12:00:00.1234567890", "12:00Z", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    """Fields out of range, more than nine digits and zones are no local times."""
    assert dt.parse_time(text) is None


@pytest.mark.parametrize(
    ("text", "zoned", "expected"),
    [
        ("1970-01-01T00:00", False, 0),
        ("1970-01-01t00:00:01", False, 1_000_000_000),
        ("1970-01-01T00:00:00.1", False, 100_000_000),
        ("1970-01-01T00:00:00.123456789", False, 123_456_789),
        ("1970-01-01T00:00Z", True, 0),
        ("1970-01-01T00:00z", True, 0),
        ("1970-01-01T00:00:00+00:00", True, 0),
        ("1970-01-01T00:00:00-00:00", True, 0),
        ("1970-01-01T00:00:00+00:00:00", True, 0),
        ("1969-12-31T16:00:00-08:00", True, None),
        ("1970-01-01T00:00:00+00", True, None),
        ("1970-01-01T00:00:00", True, None),
        ("1970-01-01T00:00:00Z", False, None),
        ("1970-01-01 00:00:00", False, None),
        ("1970-01-01T00:00:00Z\n", True, None),
        ("1970-01-01T00:00:00\n", False, None),
    ],
)
def test_timestamps_need_exactly_their_kind_of_zone(text: str, zoned: bool, expected: int | None) -> None:
    """A zero offset in any of its spellings when zoned, none otherwise; seconds and fraction are optional."""
    assert dt.parse_timestamp(text, zoned=zoned) == expected


@pytest.mark.parametrize("edge", [MOST_EPOCH_MS, -MOST_EPOCH_MS])
def test_epoch_milliseconds_end_where_microseconds_do(edge: int) -> None:
    """The last one passes, the next one is refused with its place."""
    check_epoch_ms(edge, "$.x")
    with pytest.raises(SpecError, match="Time out of range") as refusal:
        check_epoch_ms(edge + (1 if edge > 0 else -1), "$.x")
    assert refusal.value.path == "$.x"
