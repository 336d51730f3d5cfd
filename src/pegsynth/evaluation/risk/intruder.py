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
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.tabulation import Crossing, cross, group_rows
from pegsynth.errors import ParameterError
from pegsynth.inference.statistics import LEVEL, Estimate, share, weighted_mean
from pegsynth.inference.value_columns import is_numeric, numeric_values
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.schema.schema import Schema

PAPER_ATTACKS = (
    ("MDC", ("age.yrs", "sex", "patzip")),
    ("charge", ("age.yrs", "los", "patzip")),
)


@dataclass(frozen=True)
class Attack:
    """What an intruder knows, and what is inferred from it.

    Parameters
    ----------
    infer, known
        Names of features.
    values
        One number per code of the inferred feature where its mean is guessed; None where its
        most frequent category is.
    """

    infer: str
    known: tuple[str, ...]
    values: Float64 | None = field(default=None, compare=False, repr=False)

    @classmethod
    def on(cls, schema: Schema, infer: str, known: Sequence[str]) -> Attack:
        """Return an attack on a feature; numbers are guessed by their mean."""
        feature = schema.features[schema.index(infer)]
        return cls(infer, tuple(known), numeric_values(feature) if is_numeric(feature) else None)

    @property
    def amounts(self) -> bool:
        """Whether a mean is guessed, and not a category."""
        return self.values is not None

    @property
    def subject(self) -> str:
        """The attack as results call it."""
        return f"{self.infer} | {', '.join(self.known)}"


def attacks_of(
    schema: Schema, known: Sequence[str] | None = None, infer: Sequence[str] | None = None
) -> tuple[Attack, ...]:
    """Choose the attacks: the user's choice, the paper's, or those of the roles.

    Without a choice: the paper's two where the schema has their features (the built-in
    discharge data), else every sensitive feature from all quasi-identifiers. With `known`
    or `infer`: those features, the other side from the roles.

    Raises
    ------
    ParameterError
        A name is not in the schema, or a feature is both known and inferred.
    """
    papers = {name for target, given in PAPER_ATTACKS for name in (target, *given)}
    if known is None and infer is None and papers <= set(schema.names):
        return tuple(Attack.on(schema, *each) for each in PAPER_ATTACKS)
    for name in (*(known or ()), *(infer or ())):
        if name not in schema.names:
            raise ParameterError(f"attack: {name!r} is not a feature of the schema")
    both = set(known or ()) & set(infer or ())
    if both:
        raise ParameterError(f"attack: feature {min(both)!r} is both known and to be inferred")
    given = _of_role(schema, "quasi-identifier") if known is None else known
    targets = _of_role(schema, "sensitive") if infer is None else infer
    targets = [name for name in dict.fromkeys(targets) if name not in (known or ())]
    given = [name for name in dict.fromkeys(given) if name not in targets]
    return tuple(Attack.on(schema, target, given) for target in targets)


class Reach(NamedTuple):
    """How far an attack gets: its error, and the share of targets with a match."""

    error: Estimate
    matched: float


@dataclass(frozen=True)
class CellErrors:
    """Error of a target in each cell, and whether a released row matches it."""

    errors: Float64
    matched: NDArray[np.bool_]

    def reach(self, targets: Int64, *, amounts: bool, level: float = LEVEL) -> Reach:
        """Mean error and share of matches over targets, counted by cell.

        The interval is over the targets, given the released rows: Wilson's for a share of
        wrong guesses, the normal one for a mean error. Both are NaN without a target.
        """
        asked = np.flatnonzero((targets > 0) & ~np.isnan(self.errors))
        errors, weights = self.errors[asked], targets[asked]
        count = int(weights.sum())
        if amounts or not count:
            error = weighted_mean(errors, weights, level=level)
        else:
            error = share(float(np.dot(errors, weights) / count), count, level=level)
        matched = float(np.dot(self.matched[asked], weights) / count) if count else math.nan
        return Reach(error, matched)


def cells_of(
    tables: Sequence[Codes], known: Sequence[int], sensitive: int, sizes: Sequence[int]
) -> Crossing:
    """Cells of the known features and the sensitive one; tables have one feature a row."""
    groups = group_rows(tables, known, sizes)
    return cross(groups, [table[sensitive] for table in tables], sizes[sensitive])


def guess(
    crossing: Crossing, released: Int64, values: Float64 | None, *, median: bool = False
) -> CellErrors:
    """Guess for every cell, from the counts of the released rows in each.

    Amounts are guessed by the mean, or by the `median`, of which the absolute error is least.
    """
    starts, position = crossing.starts()
    if values is None:
        return _by_category(crossing, released, starts, position)
    return _by_number(crossing, released, starts, position, values, median)


def _of_role(schema: Schema, role: str) -> list[str]:
    return [feature.name for feature in schema.features if feature.role == role]


def _by_category(crossing: Crossing, released: Int64, starts: Int64, position: Int64) -> CellErrors:
    most = np.maximum.reduceat(released, starts)[position]
    modal = released == most
    matched = most > 0
    right = modal / np.add.reduceat(modal.astype(np.int64), starts)[position]
    overall = np.bincount(crossing.category, weights=released)
    anywhere = overall == overall.max()
    right = np.where(matched, right, anywhere[crossing.category] / anywhere.sum())
    return CellErrors(1 - right, matched)


def _by_number(
    crossing: Crossing,
    released: Int64,
    starts: Int64,
    position: Int64,
    values: Float64,
    median: bool,
) -> CellErrors:
    amounts = values[crossing.category]
    counted = np.where(np.isnan(amounts), 0, released)
    rows = np.add.reduceat(counted, starts)[position]
    if median:
        order = np.lexsort((amounts, position))
        ours = np.cumsum(counted[order])
        ours -= (ours - counted[order])[starts][position]
        # Cells keep the place of their combination; in it they are in the order of the amounts.
        below = np.add.reduceat((2 * ours < rows).astype(np.int64), starts)
        guesses = amounts[order][starts + below][position]
        fallback = _median(amounts, counted)
    else:
        sums, total = counted * np.nan_to_num(amounts), int(counted.sum())
        guesses = np.add.reduceat(sums, starts)[position] / np.maximum(rows, 1)
        fallback = float(sums.sum()) / total if total else math.nan
    matched = rows > 0
    return CellErrors(np.abs(np.where(matched, guesses, fallback) - amounts), matched)


def _median(amounts: Float64, counts: Int64) -> float:
    order = np.argsort(amounts)
    reached = np.cumsum(counts[order])
    if not len(reached) or not reached[-1]:
        return math.nan
    return float(amounts[order][np.searchsorted(reached, reached[-1] / 2)])
