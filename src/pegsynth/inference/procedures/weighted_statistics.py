"""Statistics of a weighted table: what is computed once of its rows, and then of every weight.

A `Statistic` reads the columns that it needs once, and returns a function from weights to named
estimates. Rows with a missing value in one of its columns are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.inference.combine import Combined, Link
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.schema import Schema

Estimates = dict[str, float]


@dataclass(frozen=True)
class Prepared:
    """A statistic of given rows.

    Parameters
    ----------
    estimates
        From weights of all rows to estimates.
    terms
        Of a formula: the coefficients of every term.
    joint
        By the name of the estimate, the formula whose features one published table must have for
        it to be supported; estimates that are not named need pairs.
    response
        What a formula explains.
    finished
        What is made of the combined estimates in the end; None: nothing.
    """

    estimates: Callable[[Float64], Estimates]
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    joint: Mapping[str, str] = field(default_factory=dict)
    response: str = ""
    finished: Callable[[Combined], Combined] | None = None


@dataclass(frozen=True)
class Statistic:
    """Something to be computed of a weighted table.

    Parameters
    ----------
    prepare
        Reads a table and the weights of its rows, with its codebook where that is known.
    analysis
        A formula, or the columns that it is about.
    link
        The scale of its intervals.
    counted
        The column of whose values estimates are the shares among all rows; empty: of none.
    """

    prepare: Callable[[pl.DataFrame, Float64, Schema | None], Prepared]
    analysis: str
    link: Link = "identity"
    counted: str = ""


@dataclass(frozen=True)
class Groups:
    """The rows of a table by group.

    Parameters
    ----------
    labels
        What is added to the name of an estimate, a group each.
    codes
        The group of every row; -1 for a row that is left out.
    """

    labels: tuple[str, ...]
    codes: Int64

    def sums(self, values: Float64) -> Float64:
        """Add up values by group."""
        kept = self.codes >= 0
        return np.bincount(self.codes[kept], values[kept], minlength=len(self.labels)).astype(
            np.float64
        )

    def rows(self) -> list[tuple[str, Int64]]:
        """Return the label and the rows of every group."""
        return [(label, np.flatnonzero(self.codes == g)) for g, label in enumerate(self.labels)]


def means(column: str, *, by: str | Sequence[str] = ()) -> Statistic:
    """Return the mean of a column, by groups if wanted."""

    def prepare(frame: pl.DataFrame, *_: object) -> Prepared:
        values, groups = numbers(frame, column), groups_of(frame, by, [column])

        def estimates(weights: Float64) -> Estimates:
            return ratios(column, groups, groups.sums(weights * values), groups.sums(weights))

        return Prepared(estimates)

    return Statistic(prepare, about(column, by))


def shares(column: str, *, by: str | Sequence[str] = ()) -> Statistic:
    """Return the share of every value of a column, within groups if wanted."""

    def prepare(frame: pl.DataFrame, *_: object) -> Prepared:
        groups = groups_of(frame, by, [column])
        values = groups_of(frame, [column])

        def estimates(weights: Float64) -> Estimates:
            found: Estimates = {}
            whole = groups.sums(weights)
            for place, label in enumerate(values.labels):
                part = groups.sums(weights * (values.codes == place))
                found |= ratios(f"{column}{label}", groups, part, whole)
            return found

        return Prepared(estimates)

    return Statistic(prepare, about(column, by), counted="" if by else column)


def quantiles(
    column: str,
    probabilities: float | Sequence[float] = 0.5,
    *,
    by: str | Sequence[str] = (),
) -> Statistic:
    """Return quantiles of a column, by groups if wanted; by default the median.

    A quantile is the smallest value that so many of the rows, by weight, do not exceed.

    Notes
    -----
    A quantile jumps from value to value, so its own replicates tell little. What varies smoothly
    is the share of rows up to it: its interval, around the probability, is read off the table as
    quantiles. Woodruff (1952), Confidence intervals for medians and other position measures,
    Journal of the American Statistical Association 47(260), 635-646,
    doi:10.1080/01621459.1952.10483443. Standard errors are those of a 0.95 interval as wide.
    """
    wanted = [float(each) for each in np.atleast_1d(np.asarray(probabilities))]
    if not wanted or not all(0 < each < 1 for each in wanted):
        raise ParameterError("probabilities of quantiles lie between 0 and 1, such as 0.5")

    def prepare(frame: pl.DataFrame, main: Float64, _: object) -> Prepared:
        values = numbers(frame, column)
        groups = [
            _Sorted.of(values, main, rows) for _, rows in groups_of(frame, by, [column]).rows()
        ]
        labels = groups_of(frame, by, [column]).labels
        places = [(each, p) for each in groups for p in wanted]
        names = [f"{column} {p:g}{label}" for label in labels for p in wanted]
        found = np.array([each.at(p) for each, p in places])

        def estimates(weights: Float64) -> Estimates:
            shares = [e.share(weights, q) for (e, _), q in zip(places, found.tolist(), strict=True)]
            return dict(zip(names, shares, strict=True))

        return Prepared(estimates, finished=partial(_as_quantiles, places, found))

    return Statistic(prepare, about(column, by))


@dataclass(frozen=True, eq=False)
class _Sorted:
    """The rows of a group in the order of their values, and the weights up to each."""

    rows: Int64
    values: Float64
    reached: Float64

    @classmethod
    def of(cls, values: Float64, weights: Float64, rows: Int64) -> _Sorted:
        ordered = rows[np.argsort(values[rows], kind="stable")]
        return cls(ordered, values[ordered], np.cumsum(weights[ordered]))

    def at(self, probability: float) -> float:
        """Return a quantile; the last digits of a running sum do not decide."""
        least = probability * self.reached[-1] * (1 - 1e-12)
        place = min(int(np.searchsorted(self.reached, least)), len(self.rows) - 1)
        return float(self.values[place])

    def share(self, weights: Float64, value: float) -> float:
        """Return the share of rows up to a value, with other weights."""
        ours = weights[self.rows]
        return float(ours[: np.searchsorted(self.values, value, side="right")].sum() / ours.sum())


def _as_quantiles(
    places: Sequence[tuple[_Sorted, float]], found: Float64, shares: Combined
) -> Combined:
    """Return quantiles, from what the shares of rows up to them are known to."""
    from scipy import stats

    off = np.atleast_1d(shares.std_error)

    def ends(factor: object) -> tuple[Float64, Float64]:
        around = [
            [each.at(p + side * step) for (each, p), step in zip(places, factor * off, strict=True)]
            for side in (-1, 1)
        ]
        return np.array(around[0]), np.array(around[1])

    usual = stats.t.ppf(0.975, shares.degrees_of_freedom)
    low, high = ends(usual)
    error = (high - low) / (2 * usual)
    scale = np.divide(error, off, out=np.zeros_like(off), where=off > 0)
    return replace(
        shares,
        estimate=found,
        variance=error**2,
        covariance=np.asarray(shares.covariance) * np.outer(scale, scale),
        ends=ends,
    )


def rates(events: str, exposure: str, *, by: str | Sequence[str] = ()) -> Statistic:
    """Return events over exposure, by groups if wanted; intervals are on the log scale.

    Parameters
    ----------
    events, exposure
        Columns of numbers of at least 0, such as cases and years.
    """

    def prepare(frame: pl.DataFrame, *_: object) -> Prepared:
        counts, times = numbers(frame, events, least=0.0), numbers(frame, exposure, least=0.0)
        groups = groups_of(frame, by, [events, exposure])

        def estimates(weights: Float64) -> Estimates:
            return ratios(
                "rate", groups, groups.sums(weights * counts), groups.sums(weights * times)
            )

        return Prepared(estimates)

    return Statistic(prepare, about(f"{events} + {exposure}", by), "log")


def numbers(frame: pl.DataFrame, column: str, *, least: float = -np.inf) -> Float64:
    """Return a column as numbers; NaN where there is none.

    Raises
    ------
    ParameterError
        The table has no such column, or it has other values than numbers of at least `least`.
    """
    values = column_of(frame, column)
    found: Any = values.cast(pl.Float64, strict=False)
    if found.null_count() > values.null_count():
        raise ParameterError(f"column {column!r} has values that are no numbers")
    found = np.asarray(found.fill_null(np.nan).to_numpy(), dtype=np.float64)
    if np.nanmin(found, initial=least) < least:
        raise ParameterError(f"column {column!r} must hold numbers of at least {least:g}")
    return np.asarray(found)


def column_of(frame: pl.DataFrame, column: str) -> pl.Series:
    """Return a column; refuse one that the table lacks."""
    if column not in frame.columns:
        raise ParameterError(f"the table has no column {column!r}; check its name")
    return frame.get_column(column)


def groups_of(frame: pl.DataFrame, by: str | Sequence[str], needed: Sequence[str] = ()) -> Groups:
    """Return the groups that some columns make, in the order of their values.

    Rows with a missing value there, or in a column that is needed, are left out.
    """
    names = [by] if isinstance(by, str) else list(by)
    kept = np.ones(frame.height, dtype=bool)
    for name in (*names, *needed):
        kept &= ~_missing(column_of(frame, name))
    if not names:
        return Groups(("",), np.where(kept, 0, -1).astype(np.int64))
    rows = frame.select(names).with_row_index("row ").filter(pl.Series(kept))
    values = rows.select(names).unique().sort(names).with_row_index("group ")
    joined = rows.join(values, on=names, how="left")
    codes = np.full(frame.height, -1, dtype=np.int64)
    codes[joined.get_column("row ").to_numpy()] = joined.get_column("group ").to_numpy()
    labels = values.select(names).rows()
    return Groups(tuple(f"[{', '.join(map(str, each))}]" for each in labels), codes)


def _missing(values: pl.Series) -> Any:
    found = values.is_null()
    if values.dtype.is_float():
        found |= values.is_nan()
    if values.dtype == pl.String:
        found |= (values == "").fill_null(value=True)
    return found.fill_null(value=True).to_numpy()


def ratios(name: str, groups: Groups, above: Float64, below: Float64) -> Estimates:
    """Return a ratio for every group."""
    if not (below > 0).all():
        empty = groups.labels[int(np.argmin(below > 0))]
        raise ParameterError(f"{name}{empty}: no row counts; leave that group out")
    return {
        f"{name}{label}": float(a / b)
        for label, a, b in zip(groups.labels, above, below, strict=True)
    }


def about(columns: str, by: str | Sequence[str]) -> str:
    """Name the columns of a statistic and of its groups."""
    return " + ".join([columns, *([by] if isinstance(by, str) else by)])
