"""Noisy distances between the original and what was published of it (R34).

Goes in: counts of the bounded original, and a public expectation of each. Comes out: for every
table the sum of |count - expected| with noise. One row changes each sum by at most 1, so that q of
them together cost what q cells do that a row changes: q/b, or q/(2 sigma^2), times k or k^2 for a
unit of k rows. The noise is settled, and its events are written down, before any data is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.mechanisms import answers
from pegsynth.privacy import Allowance, Budget, NoisyCounts
from pegsynth.random import RandomStream
from pegsynth.schema import Schema

PURPOSE, TOTAL = "quality", "quality total"
TOTAL_SHARE = Fraction(1, 10)
MOST_CELLS, MOST_PAIRS = 1 << 20, 100
Z95 = 1.959963984540054


@dataclass(frozen=True)
class QualityPlan:
    """What is bought, from public quantities alone.

    Parameters
    ----------
    allowance
        The part of the budget that was set aside for it.
    tables
        Features of every table whose distance is bought.
    units
        Whether the number of units that the cap cuts is bought too.
    rows_per_unit
        The most rows of a unit.
    """

    allowance: Allowance
    tables: tuple[tuple[int, ...], ...]
    units: bool
    rows_per_unit: int

    @property
    def figures(self) -> int:
        """How many figures are bought, the number of rows aside."""
        return len(self.tables) + self.units

    @property
    def events(self) -> tuple[NoisyCounts, NoisyCounts]:
        """What the ledger says: the number of rows, and all distances."""
        return self._event(TOTAL_SHARE, 1, TOTAL), self._event(
            1 - TOTAL_SHARE, self.figures, PURPOSE
        )

    def _event(self, share: Fraction, cells: int, purpose: str) -> NoisyCounts:
        # A little less than the share, for what rounding a square root may take.
        amount = float(self.allowance.amount * share) * (1 - 1e-9)
        if self.allowance.route == "pure":
            scale = self.rows_per_unit * cells / amount
            return NoisyCounts.laplace(scale, cells=cells, purpose=purpose, table_cells=cells)
        deviation = self.rows_per_unit * math.sqrt(cells / (2 * amount))
        return NoisyCounts.gaussian(deviation, cells=cells, purpose=purpose, table_cells=cells)


def settle_quality(
    schema: Schema, budget: Budget, share: float, named: Sequence[Sequence[str]] = ()
) -> tuple[QualityPlan, Budget]:
    """Set a share of a budget aside; return what it buys, and the budget of the rest.

    Parameters
    ----------
    named
        Tables of more than two features, or pairs beyond the first hundred, by names.
    """
    if not (isinstance(share, int | float) and 0 < share < 1):
        raise BudgetError(f"--quality takes a share of --epsilon between 0 and 1, not {share}")
    if budget.epsilon is None:
        raise BudgetError("--quality is paid out of --epsilon, the figure for the whole; state it")
    whole = budget.whole("pure" if budget.delta is None else "zcdp")
    allowance = Allowance(whole.route, whole.amount * Fraction(repr(float(share))))
    unit = schema.unit is not None
    plan = QualityPlan(allowance, _tables(schema, named), unit, schema.rows_per_unit if unit else 1)
    rest = replace(budget, paid=allowance)
    return plan, rest


def _tables(schema: Schema, named: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    sizes = schema.category_counts
    singles = [(i,) for i in range(len(sizes))]
    pairs = [
        pair
        for pair in combinations(range(len(sizes)), 2)
        if sizes[pair[0]] * sizes[pair[1]] <= MOST_CELLS
    ]
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[i * len(pairs) // MOST_PAIRS] for i in range(MOST_PAIRS)]
    asked = []
    for names in named:
        for name in names:
            if name not in schema.names:
                raise ParameterError(f"--quality-table: the schema has no feature {name!r}")
        features = tuple(dict.fromkeys(schema.index(name) for name in names))
        if math.prod(sizes[i] for i in features) > MOST_CELLS:
            raise ParameterError(
                f"--quality-table {','.join(names)}: the table has more than {MOST_CELLS:,} cells; "
                "name fewer features"
            )
        asked.append(features)
    return tuple(dict.fromkeys((*singles, *pairs, *asked)))


def cell_counts(batches: Iterator[Codes], schema: Schema, plan: QualityPlan) -> list[Int64]:
    """Count every cell of every table; rows by features go in."""
    sizes = schema.category_counts
    counts = [np.zeros(math.prod(sizes[i] for i in t), dtype=np.int64) for t in plan.tables]
    for codes in batches:
        for place, table in enumerate(plan.tables):
            keys = np.zeros(len(codes), dtype=np.int64)
            for feature in table:
                keys = keys * sizes[feature] + codes[:, feature]
            counts[place] += np.bincount(keys, minlength=len(counts[place]))
    return counts


def expected_counts(released: Int64, total: int) -> Int64:
    """Scale public counts to a public total, in whole numbers that add up to it."""
    rows = int(released.sum())
    if rows == 0 or total <= 0:
        return np.zeros_like(released)
    # In whole numbers: beyond 63 bits Python's own.
    wide = released if rows * total < 1 << 62 else released.astype(object)
    whole, rest = wide * total // rows, wide * total % rows
    left = total - int(whole.sum())
    largest = np.lexsort((np.arange(len(rest)), -rest))[:left]
    whole[largest] += 1
    return np.asarray(whole, dtype=np.int64)


def distance(counts: Int64, expected: Int64) -> int:
    """Return the sum of |count - expected|; one row changes it by at most 1 (R34)."""
    return int(np.abs(counts - expected).sum())


@dataclass(frozen=True)
class BoughtFigures:
    """What was bought.

    Parameters
    ----------
    total
        Noisy number of the rows that were counted, at least 1.
    distances
        Noisy sums, one for each table.
    units_cut
        Noisy number of the units with more rows than the cap; None where there is no unit.
    half_width, total_half_width
        Of 95 % intervals of every distance, and of the total.
    """

    total: int
    distances: tuple[int, ...]
    units_cut: int | None
    half_width: float
    total_half_width: float


def buy(
    plan: QualityPlan,
    counts: Sequence[Int64],
    released: Sequence[Int64],
    stream: RandomStream,
    *,
    units_cut: int = 0,
) -> BoughtFigures:
    """Measure the number of rows, then every distance to what it makes of the released counts.

    Parameters
    ----------
    counts
        Of the original, exact; the first table has all rows.
    released
        Of the synthetic rows, which are public.
    """
    first, second = plan.events
    total = int(answers.noisy(np.array([counts[0].sum()], dtype=np.int64), first, stream)[0])
    total = max(total, 1)
    figures = [
        distance(ours, expected_counts(theirs, total))
        for ours, theirs in zip(counts, released, strict=True)
    ]
    if plan.units:
        figures.append(units_cut)
    noisy = answers.noisy(np.array(figures, dtype=np.int64), second, stream)
    listed: NDArray[np.int64] = noisy[: len(plan.tables)]
    return BoughtFigures(
        total,
        tuple(int(each) for each in listed),
        int(noisy[-1]) if plan.units else None,
        half_width(second),
        half_width(first),
    )


def half_width(event: NoisyCounts) -> float:
    """Return half the width of a 95 % interval: the noise is at most so large, 95 times in 100."""
    scale = Fraction(event.scale_numerator, event.scale_denominator)
    if event.mechanism == "discrete-gaussian":
        # Half a step more, as the noise comes in whole numbers.
        return Z95 * math.sqrt(float(scale)) + 0.5
    return float(scale) * math.log(20) + 0.5
