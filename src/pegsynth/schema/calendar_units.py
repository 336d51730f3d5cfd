"""Moments as whole numbers: so many days, or other units, since a public origin.

Dates count from 1970-01-01 and times of day from midnight; a length of time is a number of
units already. In go ISO texts or Python's own dates, out come numbers, and the reverse. All of it
is public arithmetic: no value of a table is looked at here.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np

from pegsynth.kernels.arrays import Int64

TEMPORAL = ("date", "time", "datetime", "duration")
CALENDAR = ("date", "time", "datetime")
"""Kinds that lie on a calendar or a clock; lengths of time are numbers."""
SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
STEPS = ("year", "quarter", "month", "week", "day", "hour", "minute")
"""What edges may step by."""
MOST_STEPS = 100_000
EARLIEST, LATEST = dt.date(1900, 1, 1), dt.date(2100, 12, 31)
"""Between which dates with private edges are counted where no bounds are stated."""

_ORIGIN = dt.date(1970, 1, 1).toordinal()
_FIRST_MONDAY = dt.date(1970, 1, 5).toordinal() - _ORIGIN
_LAST_YEAR = 9998
"""The day after the last one has to be a date as well."""
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_MIDNIGHT = ("24:00", "24:00:00")
"""The end of a day, which is an edge and no time of day."""
_FINEST = {"date": "day", "time": "second", "datetime": "second", "duration": "second"}
_COARSEST = {"date": "day", "time": "hour", "datetime": "hour", "duration": "day"}


def resolution_of(kind: str, stated: str) -> str:
    """Return the unit that a kind of feature is counted in.

    Raises
    ------
    ValueError
        The unit does not suit the kind; the message says which do.
    """
    if not stated:
        return _FINEST[kind]
    names = list(SECONDS)
    first, last = names.index(_COARSEST[kind]), names.index(_FINEST[kind])
    suited = names[first : last + 1]
    if stated not in suited:
        raise ValueError(f"resolution of a {kind} must be one of {', '.join(suited)}")
    return stated


def per_day(resolution: str) -> int:
    """Return how many units a day has."""
    return SECONDS["day"] // SECONDS[resolution]


def moment(kind: str, resolution: str, value: Any) -> float:
    """Return the number of a moment: ISO text, a date or time of Python's, or the number itself.

    Raises
    ------
    ValueError
        It is none; the message says what it should be.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value) or value != int(value):
            raise ValueError(f"must be a whole number of {resolution}s")
        return float(value)
    if kind == "duration":
        raise ValueError(f"must be a number of {resolution}s, without quotes")
    try:
        number = _clock(value, resolution) if kind == "time" else _day(value, resolution)
    except (ValueError, TypeError):
        raise ValueError(f'must be {form(kind)}, as "{_EXAMPLES[kind]}"') from None
    return float(number)


_EXAMPLES = {"date": "2020-12-31", "time": "18:30:00", "datetime": "2020-12-31T18:30:00"}


def form(kind: str) -> str:
    """Say how a kind of value is written where no format is stated."""
    return {
        "date": f"a date that exists, before the year {_LAST_YEAR + 1}",
        "time": "a time of day",
        "datetime": f"a date that exists and a time, before the year {_LAST_YEAR + 1}",
        "duration": "a length of time of ISO 8601",
    }[kind]


def _day(value: Any, resolution: str) -> int:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value.strip())
    clock = value.time() if isinstance(value, dt.datetime) else dt.time()
    if value.year > _LAST_YEAR or getattr(value, "tzinfo", None) is not None:
        raise ValueError
    days: int = value.toordinal() - _ORIGIN
    return days * per_day(resolution) + _clock(clock, resolution)


def _clock(value: Any, resolution: str) -> int:
    if isinstance(value, str):
        if value.strip() in _MIDNIGHT:
            return per_day(resolution)
        value = dt.time.fromisoformat(value.strip())
    if value.tzinfo is not None or value.microsecond:
        raise ValueError
    seconds: int = value.hour * 3600 + value.minute * 60 + value.second
    if seconds % SECONDS[resolution]:
        raise ValueError
    return seconds // SECONDS[resolution]


def moment_text(kind: str, resolution: str, number: float) -> str:
    """Return a moment as ISO text; a length of time as its number."""
    whole = int(number)
    if kind == "duration":
        return str(whole)
    if kind == "time":
        seconds = min(whole * SECONDS[resolution], SECONDS["day"])
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    days, rest = divmod(whole, per_day(resolution))
    date = dt.date.fromordinal(days + _ORIGIN).isoformat()
    clock = moment_text("time", resolution, rest)
    return date if kind == "date" else f"{date}T{clock}"


def bounds(kind: str, resolution: str) -> tuple[float, float]:
    """Return the first and the last moment that count where no others are stated."""
    if kind == "time":
        return 0.0, float(per_day(resolution) - 1)
    end = float((LATEST.toordinal() + 1 - _ORIGIN) * per_day(resolution) - 1)
    return float(_day(EARLIEST, resolution)), end


def stepped(
    kind: str, resolution: str, step: str, lowest: float, highest: float
) -> tuple[float, ...]:
    """Return edges at every start of a calendar step between two moments, and these two.

    Raises
    ------
    ValueError
        There would be too many.
    """
    if (highest - lowest) / _least_width(step, resolution) > MOST_STEPS:
        raise ValueError(f"has more than {MOST_STEPS:,} steps of a {step}; take longer ones")
    inner = marks(step, resolution, lowest, highest).astype(np.float64).tolist()
    return (lowest, *inner, highest)


def _least_width(step: str, resolution: str) -> float:
    days = {"year": 365, "quarter": 90, "month": 28, "week": 7}
    seconds = days.get(step, 0) * SECONDS["day"] or SECONDS[step]
    return seconds / SECONDS[resolution]


def marks(step: str, resolution: str, lowest: float, highest: float) -> Int64:
    """Return where the steps of a calendar or a clock begin, strictly between two moments.

    The steps are those of `STEPS`, "second", "quarter hour", and "part", a quarter of a month: days
    1, 8, 15 and 22 begin one.
    """
    day = per_day(resolution)
    first, last = math.floor(lowest / day), math.floor(highest / day) + 1
    if step in _MONTHS or step == "part":
        months = _month_starts(first, last, _MONTHS.get(step, 1))
        found = (months[:, None] + np.arange(0, 28, 7)).ravel() if step == "part" else months
        found = found * day
    elif step in ("day", "week"):
        width = 7 if step == "week" else 1
        offset = _FIRST_MONDAY if step == "week" else 0
        start = (first - offset) // width * width + offset
        found = np.arange(start, last + 1, width, dtype=np.int64) * day
    else:
        seconds = 900 if step == "quarter hour" else SECONDS[step]
        width = max(seconds // SECONDS[resolution], 1)
        found = np.arange(int(lowest) // width * width, highest + 1, width).astype(np.int64)
    inside: Int64 = found[(found > lowest) & (found < highest)]
    return inside


def _month_starts(first: int, last: int, every: int) -> Int64:
    low, high = np.array([first, last]).astype("datetime64[D]").astype("datetime64[M]")
    start = int(low.astype(np.int64)) // every * every
    months = np.arange(start, int(high.astype(np.int64)) + 2, every)
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def weekdays(moments: Int64, resolution: str) -> Int64:
    """Return the weekday of moments, 0 for Monday."""
    return (moments // per_day(resolution) - _FIRST_MONDAY) % 7
