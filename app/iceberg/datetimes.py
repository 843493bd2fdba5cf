"""ISO-8601 dates and times as the format stores them: days, microseconds or nanoseconds from 1970-01-01.

The proleptic Gregorian calendar without a year limit, because Python's own dates end at the years 1 and 9999.
"""

from __future__ import annotations

import re
from typing import Final

from app.errors import SpecError

MICROS_PER_DAY: Final = 86_400_000_000
NANOS_PER_DAY: Final = 86_400_000_000_000
_NANOS_PER_SECOND: Final = 1_000_000_000
MOST_EPOCH_MS: Final = (2**63 - 1) // 1000
"""Engines show these times in microseconds, and readers subtract them: near the ends of 64 bits both overflow."""

_DAYS_PER_ERA: Final = 146_097
_YEARS_PER_ERA: Final = 400
_EPOCH_SHIFT: Final = 719_468  # days from 0000-03-01 to 1970-01-01

_DATE_TEXT: Final = r"([0-9]{4}|\+[0-9]{5,9}|-[0-9]{4,9})-([0-9]{2})-([0-9]{2})"
_TIME_TEXT: Final = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{0,9}))?)?"
_DATE: Final = re.compile(_DATE_TEXT)
_TIME: Final = re.compile(_TIME_TEXT)
_TIMESTAMP: Final = re.compile(f"{_DATE_TEXT}[Tt]{_TIME_TEXT}(.*)", re.DOTALL)
_UTC: Final = re.compile(r"[Zz]|[+-]00:00(?::00)?")
_DAYS_IN_MONTH: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def check_epoch_ms(timestamp_ms: int, path: str) -> None:
    """SpecError for a time in epoch milliseconds that no microsecond timestamp can hold: readers refuse the table."""
    if not -MOST_EPOCH_MS <= timestamp_ms <= MOST_EPOCH_MS:
        raise SpecError(
            f"Time out of range: {timestamp_ms} is not within {-MOST_EPOCH_MS} to {MOST_EPOCH_MS} epoch milliseconds",
            path,
        )


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the proleptic Gregorian calendar."""
    year -= month <= 2
    era, year_of_era = divmod(year, _YEARS_PER_ERA)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_PER_ERA + day_of_era - _EPOCH_SHIFT


def civil_from_days(days: int) -> tuple[int, int, int]:
    """(year, month, day) of a number of days from 1970-01-01."""
    era, day_of_era = divmod(days + _EPOCH_SHIFT, _DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * _YEARS_PER_ERA + (month <= 2), month, day


def parse_date(text: str) -> int | None:
    """Days from 1970-01-01 of an ISO local date, or None. Years beyond 9999 need a sign."""
    match = _DATE.fullmatch(text)
    return None if match is None else _days(match[1], match[2], match[3])


def parse_time(text: str) -> int | None:
    """Nanoseconds from midnight of an ISO local time (seconds and fraction optional), or None."""
    match = _TIME.fullmatch(text)
    return None if match is None else _nanos(match[1], match[2], match[3], match[4])


def parse_timestamp(text: str, *, zoned: bool) -> int | None:
    """Nanoseconds from the epoch of an ISO timestamp, or None.

    With `zoned` the offset must be there and be zero (`Z`, `+00:00`); otherwise there must be none.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None or (_UTC.fullmatch(match[8]) is None if zoned else match[8] != ""):
        return None
    days = _days(match[1], match[2], match[3])
    nanos = _nanos(match[4], match[5], match[6], match[7])
    return None if days is None or nanos is None else days * NANOS_PER_DAY + nanos


def _days(year: str, month: str, day: str) -> int | None:
    y, m, d = int(year), int(month), int(day)
    if year.startswith("-") and y == 0:
        return None
    if not 1 <= m <= 12:
        return None
    leap = m == 2 and y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)
    if not 1 <= d <= _DAYS_IN_MONTH[m - 1] + leap:
        return None
    return days_from_civil(y, m, d)


def _nanos(hour: str, minute: str, second: str | None, fraction: str | None) -> int | None:
    h, m, s = int(hour), int(minute), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        return None
    return ((h * 60 + m) * 60 + s) * _NANOS_PER_SECOND + int((fraction or "").ljust(9, "0"))


def format_date(days: int) -> str:
    """ISO local date; years outside 0000..9999 carry a sign."""
    year, month, day = civil_from_days(days)
    if 0 <= year <= 9999:
        head = f"{year:04d}"
    else:
        head = f"-{-year:04d}" if year < 0 else f"+{year}"
    return f"{head}-{month:02d}-{day:02d}"


def format_time(value: int, *, digits: int) -> str:
    """ISO local time of a count of 10^-`digits` seconds from midnight, with all its fraction digits."""
    seconds, fraction = divmod(value, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}.{fraction:0{digits}d}"


def format_timestamp(value: int, *, digits: int, zoned: bool) -> str:
    """ISO timestamp of a count of 10^-`digits` seconds from the epoch; `+00:00` at the end when `zoned`."""
    days, rest = divmod(value, 86_400 * 10**digits)
    return f"{format_date(days)}T{format_time(rest, digits=digits)}{'+00:00' if zoned else ''}"
