"""The paper's intruder: from what is known of a person to a sensitive value.

The intruder knows some features of a person and looks up the released rows that agree on
all of them. The guess is their most frequent category, or their mean where the sensitive
feature is numeric; the error is the share of wrong guesses, E[1(guess != truth) | known],
or the mean absolute error, E[|guess - truth| | known], over every row of the original.

Where the paper is silent:

- Ties between most frequent categories are broken at random; the figure is the exact
  expectation, nothing is drawn.
- A target without a matching row gets the public fallback: the most frequent category, or
  the mean, of the whole released table. The share of targets with a match is a record of
  its own.
- Numeric values are those of the codes (`numeric_values`); released rows whose value is
  missing do not enter a mean, and targets whose true value is missing are left out and
  counted.

All work is on counts of cells (known features, sensitive feature), so that it costs one
pass over the rows and a few over the cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.evaluation.cells import Codes, Int64
from pegsynth.evaluation.groups import Crossing, cross, group_rows
from pegsynth.evaluation.intervals import NOTHING, Estimate, mean, share

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """What the intruder achieved.

    Parameters
    ----------
    error
        Share of wrong guesses, or mean absolute error; NaN when there is no target.
    low, high
        Interval over the targets, given the released rows: Wilson for a share, normal for a
        mean.
    per_row
        Error of every row of the original: the chance of a wrong guess, or the absolute
        error; NaN for targets that are left out.
    matched_share
        Share of the targets with at least one matching row.
    targets, left_out
        Rows attacked, and rows whose true value is missing in a numeric role.
    """

    error: float
    low: float
    high: float
    per_row: Floats
    matched_share: float
    targets: int
    left_out: int


@dataclass(frozen=True)
class CellErrors:
    """Error of a target in each cell, and whether a released row matches it."""

    errors: Floats
    matched: NDArray[np.bool_]

    def estimate(self, targets: Int64, *, amounts: bool, level: float) -> Estimate:
        """Mean error over targets, counted by cell."""
        asked = np.flatnonzero((targets > 0) & ~np.isnan(self.errors))
        errors, weights = self.errors[asked], targets[asked]
        if amounts or not len(asked):
            return mean(errors, weights, level=level)
        count = int(weights.sum())
        return share(float(np.dot(errors, weights) / count), count, level=level)

    def matched_share(self, targets: Int64) -> float:
        """Share of the targets that have a matching released row."""
        asked = np.where(np.isnan(self.errors), 0, targets)
        return float(np.dot(self.matched, asked) / asked.sum()) if asked.any() else math.nan


def attack(
    original: Codes,
    synthetic: Codes,
    known: Sequence[int],
    sensitive: int,
    values: Floats | None = None,
    *,
    level: float = 0.95,
) -> Attack:
    """Attack every row of the original with what is released.

    Parameters
    ----------
    original, synthetic
        Code matrices, rows by features.
    known
        Positions of the features that the intruder knows.
    sensitive
        Position of the feature to infer.
    values
        One number per code of it, NaN where a code has none; None: infer the category.
    level
        Of the interval.

    Raises
    ------
    ParameterError
        Nothing is known, the sensitive feature is known already, or a table has no rows.
    """
    if not known or sensitive in known:
        raise ParameterError("an attack needs known features, the sensitive one not among them")
    if not len(original) or not len(synthetic):
        raise ParameterError("an attack needs at least one target and one released row")
    tables = [np.ascontiguousarray(codes.T) for codes in (original, synthetic)]
    highest = np.maximum(*(table.max(axis=1) for table in tables)).astype(np.int64)
    sizes = (highest + 1).tolist()
    if values is not None:
        if len(values) < sizes[sensitive]:
            raise ParameterError("an attack on amounts needs one number for every code")
        sizes[sensitive] = len(values)
    crossing = cells_of(tables, known, sensitive, sizes)
    targets = crossing.counts(crossing.cells[0])
    found = guess(crossing, crossing.counts(crossing.cells[1]), values)
    return summary(found, crossing, targets, amounts=values is not None, level=level)


def cells_of(
    tables: Sequence[Codes], known: Sequence[int], sensitive: int, sizes: Sequence[int]
) -> Crossing:
    """Cells of the known features and the sensitive one; tables have one feature a row."""
    groups = group_rows(tables, known, sizes)
    return cross(groups, [table[sensitive] for table in tables], sizes[sensitive])


def guess(crossing: Crossing, released: Int64, values: Floats | None) -> CellErrors:
    """Guess for every cell, from the counts of the released rows in each."""
    starts, position = crossing.starts()
    if values is None:
        return _by_category(crossing, released, starts, position)
    return _by_mean(crossing, released, starts, position, values)


def summary(
    found: CellErrors, crossing: Crossing, targets: Int64, *, amounts: bool, level: float
) -> Attack:
    """Error over the targets of the first table, with the error of each row."""
    estimate = found.estimate(targets, amounts=amounts, level=level)
    if not estimate.n:
        estimate = NOTHING
    return Attack(
        estimate.value,
        estimate.low,
        estimate.high,
        found.errors[crossing.cells[0]],
        found.matched_share(targets),
        estimate.n,
        int(targets.sum()) - estimate.n,
    )


def _by_category(crossing: Crossing, released: Int64, starts: Int64, position: Int64) -> CellErrors:
    most = np.maximum.reduceat(released, starts)[position]
    modal = released == most
    matched = most > 0
    right = modal / np.add.reduceat(modal.astype(np.int64), starts)[position]
    overall = np.bincount(crossing.category, weights=released)
    anywhere = overall == overall.max()
    right = np.where(matched, right, anywhere[crossing.category] / anywhere.sum())
    return CellErrors(1 - right, matched)


def _by_mean(
    crossing: Crossing, released: Int64, starts: Int64, position: Int64, values: Floats
) -> CellErrors:
    amounts = values[crossing.category]
    counted = np.where(np.isnan(amounts), 0, released)
    sums = counted * np.nan_to_num(amounts)
    rows = np.add.reduceat(counted, starts)[position]
    total = int(counted.sum())
    fallback = float(sums.sum()) / total if total else math.nan
    means = np.add.reduceat(sums, starts)[position] / np.maximum(rows, 1)
    matched = rows > 0
    return CellErrors(np.abs(np.where(matched, means, fallback) - amounts), matched)
