"""Times to an event in a weighted table: survival curves, hazards, and a row for every period.

Whether two columns of a weighted table have to do with each other: Rao and Scott's test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.inference.pooled_result import Pooled, WaldTest
from pegsynth.inference.procedures.replicating import replicated
from pegsynth.inference.procedures.weighted_statistics import (
    Estimates,
    Prepared,
    Statistic,
    about,
    groups_of,
    numbers,
)
from pegsynth.kernels.arrays import Float64
from pegsynth.tables.caller_frames import frame_kind, from_frame, to_kind

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


@dataclass(frozen=True, eq=False)
class RaoScott:
    """A test of independence.

    Parameters
    ----------
    test
        F, its degrees of freedom and p.
    chi_square
        Pearson's statistic of the weighted table, scaled to its number of rows.
    cells
        The proportion of every cell.
    """

    test: WaldTest
    chi_square: float
    cells: Pooled

    @property
    def pvalue(self) -> float:
        """The chance of an F at least as large where the columns are independent."""
        return self.test.pvalue

    def __str__(self) -> str:
        return f"Rao-Scott test of independence: {self.test}"


def rao_scott(first: str, second: str, frame: Any, **options: Any) -> RaoScott:
    """Test whether two columns of a table with replicate weights are independent.

    Parameters
    ----------
    first, second
        Names of the columns; rows with a missing value are left out.
    frame, options
        As for `replicated`.

    Notes
    -----
    Rao and Scott (1984), On chi-squared tests for multiway contingency tables with cell
    proportions estimated from survey data, The Annals of Statistics 12(1), 46-60,
    doi:10.1214/aos/1176346391: the second-order correction, compared with F as
    Thomas and Rao (1987) do, and as svychisq of the R package survey does by default.
    """
    sizes: list[int] = []

    def prepare(table: pl.DataFrame, *_: object) -> Prepared:
        rows, columns = groups_of(table, [first], [second]), groups_of(table, [second], [first])
        wide, kept = len(columns.labels), rows.codes >= 0
        sizes[:] = [len(rows.labels), wide, int(kept.sum())]
        if min(sizes[:2]) < 2:
            raise ParameterError(f"{first} and {second} need two values each to be compared")
        cells = rows.codes * wide + columns.codes
        names = [f"{a}{b}" for a in rows.labels for b in columns.labels]

        def estimates(weights: Float64) -> Estimates:
            sums = np.bincount(cells[kept], weights[kept], minlength=len(names))
            return dict(zip(names, (sums / sums.sum()).tolist(), strict=True))

        return Prepared(estimates)

    found = replicated(Statistic(prepare, f"{first} + {second}"), frame, **options)
    height, width, count = sizes
    shares = np.atleast_1d(found.combined.estimate)
    table = shares.reshape(height, width)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    chi_square = count * float(((table - expected) ** 2 / expected).sum())
    contrasts = _interactions(height, width)
    inverse = np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0)
    weighted = contrasts * inverse[:, np.newaxis]
    plain = contrasts.T @ weighted / count
    spread = weighted.T @ np.asarray(found.combined.covariance) @ weighted
    effects = np.linalg.pinv(plain) @ spread
    whole = float(np.trace(effects))
    freedom = whole**2 / float(np.trace(effects @ effects))
    degrees = float(np.min(found.combined.degrees_of_freedom))
    test = WaldTest.of(chi_square / whole, freedom, freedom * degrees)
    return RaoScott(test, chi_square, found)


def _interactions(height: int, width: int) -> Float64:
    """Return a basis of the interactions of a table, a column each."""
    return np.asarray(np.kron(_centred(height), _centred(width)))


def _centred(size: int) -> Float64:
    """Return columns that add up to 0."""
    found = np.eye(size)[:, 1:] - 1.0 / size
    return np.asarray(found)
