"""Times to an event in a weighted table: survival curves, hazards, and a row for every period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from pegsynth.arrays import Float64
from pegsynth.errors import ParameterError
from pegsynth.io.caller_frames import frame_kind, from_frame, to_kind
from pegsynth.procedures.weighted_statistics import (
    Estimates,
    Prepared,
    Statistic,
    about,
    groups_of,
    numbers,
)

MOST_PERIODS = 1000


def kaplan_meier(
    time: str, event: str, times: Sequence[float], *, by: str | Sequence[str] = ()
) -> Statistic:
    """Return the chance to be without the event after some times, by groups if wanted.

    Intervals are symmetrical on the scale of log(-log).

    Parameters
    ----------
    time
        A column of times to the event, or to the last time that a row was seen.
    event
        A column of 1 where the event happened then, and 0 where it did not.
    times
        For which times.
    """
    return _survival(time, event, times, by, hazard=False)


def hazards(
    time: str, event: str, times: Sequence[float], *, by: str | Sequence[str] = ()
) -> Statistic:
    """Return the chance of the event at some times among those still at risk, by groups if wanted.

    Parameters are those of `kaplan_meier`; times are periods, such as years, and a row is at risk
    up to and including its own.
    """
    return _survival(time, event, times, by, hazard=True)


def _survival(
    time: str, event: str, times: Sequence[float], by: str | Sequence[str], *, hazard: bool
) -> Statistic:
    wanted = np.asarray(times, dtype=np.float64)
    letter = "h" if hazard else "S"

    def prepare(frame: pl.DataFrame, *_: object) -> Prepared:
        ends, happened = numbers(frame, time, least=0.0), _happened(frame, event)
        groups = groups_of(frame, by, [time, event]).rows()

        def estimates(weights: Float64) -> Estimates:
            found: Estimates = {}
            for label, rows in groups:
                at, chance = _hazards(ends[rows], happened[rows], weights[rows])
                if hazard:
                    chances = dict(zip(at.tolist(), chance.tolist(), strict=True))
                    values = [chances.get(each, 0.0) for each in wanted.tolist()]
                else:
                    alive = np.append(1.0, np.cumprod(1 - chance))
                    values = alive[np.searchsorted(at, wanted, side="right")].tolist()
                for each, value in zip(wanted.tolist(), values, strict=True):
                    found[f"{letter}({each:g}){label}"] = value
            return found

        return Prepared(estimates)

    return Statistic(prepare, about(f"{time} + {event}", by), "log" if hazard else "cloglog")


def _hazards(ends: Float64, happened: Float64, weights: Float64) -> tuple[Float64, Float64]:
    """Return the times at which rows end, and the part of those at risk with the event then."""
    at, place = np.unique(ends, return_inverse=True)
    leaving = np.bincount(place, weights, minlength=len(at))
    events = np.bincount(place, weights * happened, minlength=len(at))
    risk = np.cumsum(leaving[::-1])[::-1]
    return at, np.divide(events, risk, out=np.zeros_like(risk), where=risk > 0)


def _happened(frame: pl.DataFrame, event: str) -> Float64:
    found = numbers(frame, event)
    if not np.isin(found[~np.isnan(found)], (0.0, 1.0)).all():
        raise ParameterError(f"column {event!r} must be 1 where the event happened, and 0 else")
    return found


def person_periods(frame: Any, time: str, event: str, *, period: str = "period") -> Any:
    """Return a table with a row for every period 1, 2, .. that a row was at risk.

    Its column `event` is 1 in the last period of a row whose event happened. A logistic regression
    of it on `period` and other columns is a discrete-time hazard model; weights are repeated.

    Parameters
    ----------
    frame
        A table whose column `time` holds whole numbers of at least 1.
    period
        The name of the new column.
    """
    table = from_frame(frame).lazy().collect()
    if period in table.columns:
        raise ParameterError(f"the table has a column {period!r}; state another name as period")
    ends, happened = numbers(table, time), _happened(table, event)
    known = ~np.isnan(ends) & ~np.isnan(happened)
    whole = ends[known]
    if not ((whole >= 1) & (whole <= MOST_PERIODS) & (whole % 1 == 0)).all():
        raise ParameterError(
            f"column {time!r} must hold whole numbers from 1 to {MOST_PERIODS}, a period each"
        )
    counts = np.where(known, ends, 0).astype(np.int64)
    rows = np.repeat(np.arange(table.height), counts)
    periods = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    last = (periods == counts[rows]) & (happened[rows] == 1)
    found = table[rows].with_columns(
        pl.Series(period, periods), pl.Series(event, last.astype(np.int64))
    )
    return to_kind(found, frame_kind(frame))
