"""What all replicates of a release share, and no spread of theirs shows: the ends of tails (R28).

An octave of a measured number that does not stand out of the noise is not seen (R21): its rows are
in the table and in every replicate, with values below their own. Tails are therefore carried on in
the table of whoever analyses it: as many of its largest values as the law of the tail has beyond
them, and noise may hide, move out to where that law has them. How far an estimate moves by that is
one more error of it, beside those of the replicates: its square is added to the variance, and its
products with those of other estimates to their covariances.

That is a law's guess. Where so many rows as noise may hide at all, put at one end of the number,
would move an estimate out of the wider interval, it is supported by bins only. Replicates that do
not vary at all have nothing to vary: the number was not measured. All of it reads the table, its
ledger and its codebook alone, so nothing is charged (R11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pegsynth.codec.tails import VISIBLE, WIDTH_SPREAD, Seen, upper_law
from pegsynth.errors import ParameterError
from pegsynth.inference.choice import from_released_blocks, rows_in_of
from pegsynth.inference.combine import Combined
from pegsynth.inference.combining_rules import Numbers
from pegsynth.inference.ledger_support import (
    BY_BINS,
    DECLARED,
    NOT_SUPPORTED,
    SUPPORTED,
    drowned,
    hidden_rows,
    listed,
    named_features,
)
from pegsynth.kernels.arrays import Float64
from pegsynth.privacy import Ledger
from pegsynth.schema import Schema
from pegsynth.tables.caller_frames import from_frame

NOT_VARYING = (
    f"{NOT_SUPPORTED}: replicates of {{}} do not vary, as where noise hides a whole number"
)
DROWNED = f"{NOT_SUPPORTED}: noise drowns the published table of {{}}"
HIDDEN = (
    f"{BY_BINS}: noise may hide up to {{}} rows at the ends of {{}}, which would move the estimate "
    "by more than its interval is wide"
)
WIDENED = (
    "intervals are wider by what the tail of {} would do beyond the largest values of the table, "
    "where noise may hide up to {} rows"
)
LEVEL = 0.95
_POINTS, _CHANCES = np.polynomial.hermite_e.hermegauss(5)
WIDTHS = np.exp(WIDTH_SPREAD * _POINTS)
"""Widths of a tail beside that of the upper values: five points of the normal law that
`codec.tails` expects of their logs, with their chances before anything is known of the tail."""
_WORTH_TELLING = 1.05

Estimates = Callable[[Numbers], Mapping[str, float]]
EstimatesOf = Callable[[pl.DataFrame], Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Asked:
    """An analysis of a table.

    Parameters
    ----------
    frame, weights
        The table, and the weights of its rows.
    estimates
        From weights of all rows to its estimates.
    estimates_of
        From a table with other values in some rows to the same estimates.
    analysis
        The formula or the features that it is of.
    schema
        The codebook, which tells of public bounds.
    """

    frame: Any
    weights: Numbers
    estimates: Estimates
    estimates_of: EstimatesOf
    analysis: str
    schema: Schema | None = None


def with_shared_bias(found: Combined, asked: Asked, ledger: Ledger) -> Combined:
    """Return estimates with the variance and the statuses that what replicates share leaves them.

    Parameters
    ----------
    found
        Estimates with statuses.
    """
    if not from_released_blocks(ledger) or not found.statuses:
        return found
    values = np.atleast_1d(np.asarray(found.estimate, dtype=np.float64))
    errors = np.atleast_1d(np.asarray(found.std_error, dtype=np.float64))
    statuses, notes = list(found.statuses), list(found.notes)
    if DECLARED not in " ".join(notes):
        total = float(rows_in_of(ledger) or asked.weights.sum())
        loud = drowned(ledger, asked.analysis, max(total, 1.0))
        if loud:
            statuses = [NOT_SUPPORTED] * len(statuses)
            notes.append(DROWNED.format(listed(loud)))
    # A share of 0 or 1 does not vary, and neither do figures of features with public counts.
    rows = {name: hidden_rows(ledger, name) for name in named_features(ledger, asked.analysis)}
    rows = {name: hidden for name, hidden in rows.items() if hidden}
    still = errors <= 1e-12 * np.abs(values) if rows else np.zeros(len(values), dtype=bool)
    if still.any():
        statuses = [
            NOT_SUPPORTED if s else old for s, old in zip(still.tolist(), statuses, strict=True)
        ]
        notes.append(NOT_VARYING.format(listed(list(rows))))
    scale = _scale(ledger, asked.weights)
    columns = {name: _numbers(asked.frame, name) for name in rows}
    for name, hidden in rows.items():
        wider = _widened(found, asked, name, columns[name], hidden * scale)
        if (np.asarray(wider.variance) > _WORTH_TELLING**2 * np.asarray(found.variance)).any():
            notes.append(WIDENED.format(name, math.ceil(hidden)))
        found = wider
    low, high = (np.atleast_1d(end) for end in found.interval(LEVEL))
    half = ((high - low) / 2).tolist()
    for name, hidden in rows.items() if SUPPORTED in statuses else ():
        moved = _moved(found, asked, columns[name], hidden * scale)
        beyond = [
            status == SUPPORTED and not off <= reach
            for status, off, reach in zip(statuses, moved, half, strict=True)
        ]
        if any(beyond):
            if "~" in asked.analysis:
                # Coefficients of one fit move together; rows at one place do not show how.
                beyond = [status == SUPPORTED for status in statuses]
            statuses = [BY_BINS if b else s for b, s in zip(beyond, statuses, strict=True)]
            notes.append(HIDDEN.format(math.ceil(hidden), name))
    return replace(found, statuses=tuple(statuses), notes=tuple(notes))


def _widened(found: Combined, asked: Asked, name: str, column: Float64, hidden: float) -> Combined:
    """Return estimates with the variance that the tails of a number add to theirs."""
    if found.covariance is None:
        return found
    known = None if asked.schema is None or name not in asked.schema.names else asked.schema[name]
    covariance = np.atleast_2d(found.covariance).copy()
    for sign in (1.0, -1.0):
        bound = None if known is None else (known.highest if sign > 0 else known.lowest)
        limit = math.inf if bound is None else sign * bound
        for chance, sizes in longer_tails(sign * column, asked.weights, hidden, limit):
            off = _shift(found, asked, name, sign * sizes)
            covariance += chance * np.outer(off, off)
    return replace(found, covariance=covariance, variance=np.diag(covariance).copy())


def _shift(found: Combined, asked: Asked, name: str, values: Float64) -> Float64:
    """Return by how much estimates move where a number has other values; 0 where they have none."""
    table = from_frame(asked.frame).lazy().collect()
    if table[name].dtype.is_integer():
        values = np.rint(values)
    try:
        fitted = asked.estimates_of(table.with_columns(pl.Series(name, values, nan_to_null=True)))
    except ParameterError:
        # Of these values it cannot be estimated, as where a category has no row left.
        fitted = {}
    now = np.atleast_1d(np.asarray(found.estimate, dtype=np.float64))
    pairs = zip(found.names, now.tolist(), strict=True)
    return np.array([fitted.get(each, value) - value for each, value in pairs])


def longer_tails(
    values: Float64, weights: Float64, hidden: float, limit: float = math.inf
) -> Iterator[tuple[float, Float64]]:
    """Yield what values may be if their tail goes on, each with its chance.

    The law is log-normal and agrees with two upper quantiles; it may be wider or narrower beyond
    them, as far as noise is likely to hide what it has there. Nothing is yielded where that is
    less than one row.

    Parameters
    ----------
    values
        Numbers, NaN where there is none. Only those above 0 have this tail.
    hidden
        The weight of rows beyond which they would have been seen, `VISIBLE` deviations of noise.
    limit
        The largest number that there is.
    """
    from scipy.special import ndtr, ndtri

    mine = np.flatnonzero(values > 0)
    total = float(weights[mine].sum())
    if total <= 0 or values[mine].max() >= limit:
        return
    order = mine[np.argsort(-values[mine], kind="stable")]
    sizes, counted = values[order], weights[order]
    noise = hidden / VISIBLE
    law = upper_law(Seen(counted, sizes, sizes), noise, outwards=True)
    widths = law.width * WIDTHS
    centres = law.centres(widths)
    last = math.log(float(sizes[0]))
    beyond, further = (ndtr((centres - end) / widths) for end in (last, last + _OCTAVE))
    masses = total * beyond
    # An octave is seen by itself: what is further out than the next one does not show it.
    chances = _CHANCES * ndtr((hidden - total * (beyond - further)) / noise)
    chances /= max(float(chances.sum()), _NEVER)
    # The middle of every row's weight.
    place = np.cumsum(counted) - counted / 2
    for centre, width, part, mass, chance in zip(
        centres.tolist(), widths.tolist(), beyond.tolist(), masses, chances.tolist(), strict=True
    ):
        if chance < _NEVER or mass < float(counted.mean()):
            continue
        outer = place < mass
        moved = centre - width * ndtri(place[outer] / mass * part)
        longer = values.copy()
        longer[order[outer]] = np.clip(np.exp(np.minimum(moved, _LARGEST)), sizes[outer], limit)
        yield chance, longer


_NEVER = 1e-9
_OCTAVE = math.log(2.0)
_LARGEST = math.log(np.finfo(np.float64).max) / 2
"""Squares of numbers must not overflow."""


def _scale(ledger: Ledger, weights: Numbers) -> float:
    """Return what a row of the original weighs."""
    rows = rows_in_of(ledger)
    return 1.0 if rows is None else float(weights.sum()) / rows


def _numbers(frame: Any, name: str) -> Float64:
    """Return a column as numbers, NaN where a cell is none; of dates all of them."""
    column = from_frame(frame).lazy().select(name).collect().to_series()
    if not (column.dtype.is_numeric() or column.dtype == pl.String):
        return np.full(len(column), np.nan)
    numbers = column.cast(pl.Float64, strict=False).to_numpy()
    found: Float64 = np.where(np.isfinite(numbers), numbers, np.nan)
    return found


def _moved(found: Combined, asked: Asked, numbers: Float64, mass: float) -> Sequence[float]:
    """Return by how much estimates move with more weight at either end of a number."""
    values, names = np.atleast_1d(np.asarray(found.estimate, dtype=np.float64)), found.names
    most = np.zeros(len(values))
    if not np.isfinite(numbers).any():
        return most.tolist()
    for end in (np.nanargmin(numbers), np.nanargmax(numbers)):
        more = asked.weights.copy()
        more[end] += mass
        fitted = asked.estimates(more)
        most = np.maximum(most, np.abs(np.array([fitted[each] for each in names]) - values))
    farthest: list[float] = most.tolist()
    return farthest
