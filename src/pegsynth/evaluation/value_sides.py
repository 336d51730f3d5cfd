"""The numbers of one feature as distributions: of the original, and of every released table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegsynth.evaluation.chance import rows_judged
from pegsynth.evaluation.empirical import Empirical, Order
from pegsynth.evaluation.pooling import pooled, replicated
from pegsynth.evaluation.statistics import Estimate
from pegsynth.evaluation.value_columns import TableValues
from pegsynth.inference.combining_rules import Rule

Figure = Callable[[Empirical], float]


@dataclass(frozen=True)
class Sides:
    """One feature, in the original and in the synthetic tables.

    Parameters
    ----------
    name
        The feature.
    original, synthetic
        Its distribution in the original, and in each synthetic table.
    replicates
        The same under each replicate weight of the one synthetic table that has some.
    dropped
        Rows without a number: of the original, then of each synthetic table.
    rule
        How several tables were made, where that is known.
    """

    name: str
    original: Empirical
    synthetic: tuple[Empirical, ...]
    replicates: tuple[Empirical, ...] = ()
    dropped: tuple[int, ...] = ()
    rule: Rule | None = None

    @property
    def rows(self) -> float:
        """Rows to judge by: of a fresh sample as large as the smallest synthetic table."""
        return rows_judged(self.original.rows, min(each.rows for each in self.synthetic))

    def mean(self, figure: Figure) -> float:
        """Return the mean of a figure over the synthetic tables."""
        return sum(map(figure, self.synthetic)) / len(self.synthetic)

    def estimate(self, figure: Figure, variance: Figure, *, level: float) -> Estimate:
        """Return a figure of the synthetic tables with its interval."""
        values = [figure(each) for each in self.synthetic]
        if self.replicates and len(values) == 1:
            return replicated(values[0], [figure(each) for each in self.replicates], level=level)
        return pooled(
            values,
            [max(variance(each), 0.0) for each in self.synthetic],
            share=sum(each.n for each in self.synthetic) / len(values) / self.original.n,
            rule=self.rule,
            level=level,
        )


def sides_of(
    name: str, original: TableValues, synthetic: Sequence[TableValues], rule: Rule | None = None
) -> Sides | str:
    """Sort the numbers of a feature in all tables; a text says why it cannot be done."""
    for number, table in enumerate((original, *synthetic)):
        if name in table.labelled:
            where = f"synthetic table {number}" if number else "the original"
            return f"{where} holds labels of bins, no numbers"
    orders = [_order(each, name) for each in (original, *synthetic)]
    laws = [order.empirical(each.weights) for order, each in _paired(orders, original, synthetic)]
    if laws[0] is None:
        return "no row of the original has a number"
    known = tuple(law for law in laws[1:] if law is not None)
    if len(known) < len(synthetic):
        return "a synthetic table has no row with a number"
    replicates: tuple[Empirical, ...] = ()
    if len(synthetic) == 1 and synthetic[0].replicates is not None:
        found = [orders[1].empirical(line) for line in synthetic[0].replicates]
        replicates = tuple(law for law in found if law is not None)
    dropped = tuple(
        len(each.columns[name]) - order.count
        for order, each in _paired(orders, original, synthetic)
    )
    return Sides(name, laws[0], known, replicates, dropped, rule)


def _order(table: TableValues, name: str) -> Order:
    return Order.of(table.columns[name], weighted=table.weights is not None)


def _paired(
    orders: Sequence[Order], original: TableValues, synthetic: Sequence[TableValues]
) -> list[tuple[Order, TableValues]]:
    return list(zip(orders, (original, *synthetic), strict=True))
