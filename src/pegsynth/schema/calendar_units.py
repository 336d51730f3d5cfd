"""Moments as whole numbers: so many days, or other units, since a public origin.

Dates count from 1970-01-01 and times of day from midnight; a length of time is a number of
units already. In go ISO texts or Python's own dates, out come numbers, and the reverse. All of it
is public arithmetic: no value of a table is looked at here.

A format such as ``%d.%m.%Y`` becomes a pattern with a group for every part. A text that has
another form, and a date that does not exist, have no number; a text without the stated form may
still be ISO text, which may end with an offset from UTC. It is read past: a time is told by the
clock that the text shows, as are times of a zone. Only a format with ``%z`` counts moments.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pegsynth.kernels.arrays import Int64

MOMENTS = (str, dt.date, dt.time, dt.datetime)
"""What people write moments as."""
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


def moment(kind: str, resolution: str, value: object) -> float:
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
    days = {"year": 365, "quarter": 90, "month": 28, "week": 7}
    seconds = days.get(step, 0) * SECONDS["day"] or SECONDS[step]
    if (highest - lowest) * SECONDS[resolution] / seconds > MOST_STEPS:
        raise ValueError(f"has more than {MOST_STEPS:,} steps of a {step}; take longer ones")
    inner = marks(step, resolution, lowest, highest).astype(np.float64).tolist()
    return (lowest, *inner, highest)


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


OFFSET = "[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?"
"""An offset from UTC, as ISO 8601 and databases write it."""

PARTS: dict[str, tuple[str, str]] = {
    "Y": ("year", "[0-9]{4}"),
    "y": ("short year", "[0-9]{2}"),
    "m": ("month", "[0-9]{1,2}"),
    "b": ("month name", "[A-Za-z]{3}"),
    "d": ("day", "[0-9]{1,2}"),
    "H": ("hour", "[0-9]{1,2}"),
    "M": ("minute", "[0-9]{1,2}"),
    "S": ("second", "[0-9]{1,2}"),
    "z": ("offset", OFFSET),
}
"""What may stand after a percent sign: the part, and how its text looks."""

_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]+)?)?"
_PASSED = rf"(?: ?(?:{OFFSET}))?"
_DATE_PARTS, _CLOCK_PARTS = ("year", "month", "day"), ("hour", "minute", "second", "fraction")
_LENGTH = (
    r"(-)?P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?"
    r"(?:([0-9]{1,12})(\.[0-9]+)?S)?)?"
)
_LENGTH_PARTS = ("sign", "day", "hour", "minute", "second", "fraction")


@dataclass(frozen=True)
class Form:
    """A pattern of text, and what its groups are."""

    pattern: str
    parts: tuple[str, ...]


ISO: dict[str, Form] = {
    "date": Form(rf"^\s*{_DATE}(?:[T ]{_CLOCK}{_PASSED})?\s*$", _DATE_PARTS + _CLOCK_PARTS),
    "datetime": Form(rf"^\s*{_DATE}(?:[T ]{_CLOCK}{_PASSED})?\s*$", _DATE_PARTS + _CLOCK_PARTS),
    "time": Form(rf"^\s*{_CLOCK}{_PASSED}\s*$", _CLOCK_PARTS),
    "duration": Form(rf"^\s*{_LENGTH}\s*$", _LENGTH_PARTS),
}
"""How values are written where no format is stated."""

MOMENT = Form(
    rf"^\s*{_DATE}(?:[T ]{_CLOCK}(?: ?({OFFSET}))?)?\s*$",
    (*_DATE_PARTS, *_CLOCK_PARTS, "offset"),
)
"""ISO text of a feature whose format has an offset: it counts there, too."""


@dataclass(frozen=True)
class DateFormat:
    """A format that a schema states.

    Parameters
    ----------
    text
        Literal characters, and parts such as ``%d``.
    kind
        The kind of feature that it is for.

    Raises
    ------
    ValueError
        It is none that can be read back; the message says why.

    Examples
    --------
    >>> DateFormat("%d.%m.%Y", "date").form.parts
    ('day', 'month', 'year')
    """

    text: str
    kind: str

    def __post_init__(self) -> None:
        found = self.form.parts
        if len(set(found)) < len(found):
            raise ValueError("names a part twice; name each once")
        have = {part.split()[-1] if part == "short year" else part.split()[0] for part in found}
        needed: tuple[str, ...] = ("hour",) if self.kind == "time" else ("year", "month", "day")
        lacking = [part for part in needed if part not in have]
        if lacking:
            raise ValueError(f"lacks the {lacking[0]}; a {self.kind} has {', '.join(needed)}")
        if "offset" in have and self.kind != "datetime":
            raise ValueError('has an offset from UTC; kind = "datetime" is for such columns')
        if "offset" in have and "hour" not in have:
            raise ValueError("has an offset from UTC and no hour; add %H")
        if self.kind == "date" and have & {"hour", "minute", "second"}:
            raise ValueError('has a time of day; kind = "datetime" is for such columns')
        if self.kind == "time" and have & {"year", "month", "day"}:
            raise ValueError('has a date; kind = "datetime" is for such columns')

    @cached_property
    def form(self) -> Form:
        """The pattern of its texts."""
        pieces, parts = [], []
        for piece in re.split(r"(%.?)", self.text, flags=re.DOTALL):
            if not piece.startswith("%"):
                pieces.append(re.escape(piece))
                continue
            if piece[1:] not in PARTS:
                known = ", ".join(f"%{each}" for each in PARTS)
                raise ValueError(f"has a part that is not known; known are {known}")
            part, pattern = PARTS[piece[1:]]
            pieces.append(f"({pattern})")
            parts.append(part)
        return Form(rf"^\s*{''.join(pieces)}\s*$", tuple(parts))
