"""The public grid that dates and times are counted on (R21).

Four levels, each of which divides the one above: years, months, quarters of a month and days for
dates; years, months, days and hours for dates with a time; hours, quarters of an hour, minutes
and seconds for times of day. A short range of dates with a time is counted by minutes, a very
long one by days or months. All of it follows from the schema alone.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pegsynth.arrays import Int64
from pegsynth.schema.calendar_units import SECONDS, bounds, marks, per_day

MOST_CELLS = 1 << 21
_DAYS_BY_MINUTES = 366
_BY_HOURS = ("year", "month", "day", "hour")
_BY_MINUTES = ("month", "day", "hour", "minute")
_BY_DAYS = ("year", "month", "part", "day")
_BY_MONTHS = ("year", "year", "month", "month")
_CLOCK = ("hour", "quarter hour", "minute", "second")


def calendar_marks(
    kind: str,
    resolution: str,
    lowest: float | None,
    highest: float | None,
    public: tuple[float, ...],
) -> tuple[tuple[Int64, ...], float]:
    """Return where the nodes of every level begin, and where the last of them ends.

    Parameters
    ----------
    kind, resolution
        What is counted, and in which unit.
    lowest, highest
        Public bounds of a feature with private edges; the usual ones where they are None.
    public
        Public edges, if there are any: the finest cells begin at them, too.
    """
    if public:
        return _marks(kind, resolution, public[0], public[-1], public), public[-1]
    usual = bounds(kind, resolution)
    first = usual[0] if lowest is None else lowest
    # The last moment has a cell of its own, which ends after it.
    end = (usual[1] if highest is None else highest) + 1
    return _marks(kind, resolution, first, end, ()), end


@lru_cache(maxsize=16)
def _marks(
    kind: str, resolution: str, lowest: float, highest: float, public: tuple[float, ...]
) -> tuple[Int64, ...]:
    steps = levels_of(kind, resolution, lowest, highest)
    start = np.array([lowest], dtype=np.int64)
    found = [np.append(start, marks(step, resolution, lowest, highest)) for step in steps]
    if public:
        found[-1] = np.union1d(found[-1], np.array(public[:-1], dtype=np.int64))
    return tuple(found)


def levels_of(kind: str, resolution: str, lowest: float, highest: float) -> tuple[str, ...]:
    """Return the steps of the four levels of a grid: a function of what is public."""
    days = (highest - lowest) / per_day(resolution)
    if kind == "time":
        finest = [step for step in _CLOCK if SECONDS.get(step, 900) >= SECONDS[resolution]]
        steps = [step for step in finest if step != "quarter hour" or resolution != "hour"]
        return (*steps, *steps[-1:] * 3)[: len(_CLOCK)]
    if kind == "datetime" and days <= _DAYS_BY_MINUTES and resolution in ("minute", "second"):
        return _BY_MINUTES
    if kind == "datetime" and days * 24 <= MOST_CELLS:
        return _BY_HOURS
    return _BY_DAYS if days <= MOST_CELLS else _BY_MONTHS
