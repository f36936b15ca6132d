"""Days: numbers, ISO dates and times, or text of a stated format, in the order of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import isfinite
from typing import NamedTuple

from softcal.exceptions import InputError

NUMBERS, DATES, TIMES = "numbers", "dates", "times with an offset from UTC"
"""The kinds of days. Those of different kinds have no order."""

CLEAR = "either a number or an ISO date such as 2026-05-31"
ALIKE = f"all {NUMBERS}, all {DATES}, or all {TIMES}"

_WHOLE = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_MONTH = re.compile(r"\d{4}-\d{2}")
# A date or a number: read as a number, its axis would not be linear in time.
_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")


class Every(StrEnum):
    """What times are grouped by."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class Day(NamedTuple):
    """A day or time: its kind, and a number or a time, in UTC if it has an offset."""

    kind: str
    at: float | datetime

    def begin(self, every: Every) -> Day:
        """Return the first moment of its day, week, or month; weeks start on Monday."""
        if not isinstance(self.at, datetime):
            return self
        at = self.at.replace(hour=0, minute=0, second=0, microsecond=0)
        days = {Every.DAY: 0, Every.WEEK: at.weekday(), Every.MONTH: at.day - 1}[every]
        return Day(self.kind, at - timedelta(days=days))

    @property
    def text(self) -> str:
        """The day in full, as `day_of` reads it."""
        if not isinstance(self.at, datetime):
            return str(self.at)
        return self.at.isoformat() + "Z" * (self.kind == TIMES)

    def label(self, every: Every | None = None) -> str:
        """Return the day as shown: a month without its day, a day without its time."""
        text = str(self.at)
        return text[:7] if every is Every.MONTH else text.removesuffix(" 00:00:00")

    @property
    def position(self) -> float:
        """The place on an axis that is linear in time: a number, or days since 1970."""
        if not isinstance(self.at, datetime):
            return float(self.at)
        return (self.at - datetime(1970, 1, 1)) / timedelta(days=1)


def day_of(text: str, day_format: str | None = None) -> Day | None:
    """Return the day that a text states; None if it is not clear.

    >>> day_of("10"), day_of("1/2/2016"), day_of("20160102")
    (Day(kind='numbers', at=10), None, None)
    >>> day_of("2016-01-02").label(), day_of("1/2/2016", "%m/%d/%Y").label()
    ('2016-01-02', '2016-01-02')
    """
    text = text.strip()
    try:
        if day_format is not None:
            moment = datetime.strptime(text, day_format)
        elif _REAL.fullmatch(text):
            return _number(text)
        else:
            moment = datetime.fromisoformat(text + "-01" * bool(_MONTH.fullmatch(text)))
        if moment.tzinfo is None:
            return Day(DATES, moment)
        return Day(TIMES, moment.astimezone(UTC).replace(tzinfo=None))
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> Day | None:
    number = float(text)
    if _WHOLE.fullmatch(text) and isfinite(number):
        number = int(text)  # exact beyond 2**53
    elif number.is_integer() and abs(number) < 2**53:
        number = int(number)
    clear = isfinite(number) and not _DIGITS.fullmatch(str(number))
    return Day(NUMBERS, number) if clear else None


def refuse_bad_format(day_format: str) -> None:
    """Raise if a format cannot be read, or leaves the month open."""
    example = datetime(2027, 11, 23, tzinfo=UTC)
    try:
        found = datetime.strptime(example.strftime(day_format), day_format)
    except (ValueError, re.error) as error:
        message = (
            "--day-format must be a format of Python's strptime, such as '%m/%d/%Y': got "
            f"{day_format!r:.60} ({error})."
        )
        raise InputError(message) from error
    if (found.year, found.month) != (example.year, example.month):
        message = (
            "--day-format must state the year and the month, as '%m/%d/%Y' does: got "
            f"{day_format!r:.60}."
        )
        raise InputError(message)
