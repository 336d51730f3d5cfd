"""What measuring numbers costs at most, and what it gives: before any data is read.

In go the schema and the budget, both public; out comes the part of the budget that trees
take, the noise that they have at the top, and, for a number of rows, how many bins there
will be. Whatever the data is, a release spends no more (R11, R21).
"""

from __future__ import annotations

from dataclasses import dataclass

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.numbers.clipped_sum import SUM_PART
from pegsynth.numbers.settle import bins_for
from pegsynth.numbers.tree import LEVEL_SHARES
from pegsynth.privacy import Allowance, Budget
from pegsynth.schema.schema import Schema

USUAL_SHARE, MOST_SHARE = 0.02, 0.12
"""Part of the budget for the counts of each feature, as long as they do not take too much together:
for tables whose rows stand far out of the noise, and the most for small ones."""
LEAST_COUNTS, LEAST_SUM = 0.025, 0.035
"""The least for the counts of a number, and for its clipped sum: with less a mean is further off
than one sum with a twentieth of the budget would be, however many rows there are."""
MOST_TOGETHER = 0.3
UNKNOWN_SHARE = 0.04
"""Part for each feature whose categories are to be found, where no number of rows is public."""
COUNT_SHARE = 0.002
"""Part of the budget for the number of rows, where that is not public."""
_USUAL_SIGNAL, _GROWTH = 30_000.0, 0.4
"""Rows per deviation of the noise of the whole budget from which `USUAL_SHARE` is enough, and how
fast shares grow below: edges of small tables are what is lost first."""


@dataclass(frozen=True)
class NumbersPlan:
    """How the numbers of a schema are measured.

    Parameters
    ----------
    names
        Features that are measured, in the order of the schema.
    share
        The part of the whole budget that each may take.
    sum_part
        The part of that which a clipped sum takes.
    whole_deviation
        Deviation of the noise that the whole budget would put on one table.
    top_deviation
        Deviation of the noise on the octaves of a number that has a clipped sum.
    """

    names: tuple[str, ...]
    share: float
    sum_part: float
    whole_deviation: float
    top_deviation: float

    @property
    def together(self) -> float:
        """The most of the whole budget that all features take; the rest is for the release."""
        return self.share * len(self.names)

    def bins(self, rows: float, *, model: bool = True) -> int:
        """Return how many bins a feature gets that does not say so itself."""
        return bins_for(rows, self.whole_deviation, model=model)


def plan_numbers(
    schema: Schema,
    allowance: Allowance,
    *,
    rows: float | None = None,
    share: float | None = None,
) -> NumbersPlan:
    """Plan how numbers are measured out of an allowance for the whole release.

    Parameters
    ----------
    rows
        Number of rows, public or noisy; None for the most that features may take.
    share
        The part of it for each feature; None for the usual one.
    """
    names = tuple(feature.name for feature in schema.features if feature.wants_shape)
    price = price_of(schema, allowance)
    usual, part = _usual_shares(price, rows)
    each = _share_of_each(schema, usual) if share is None else share
    if not 0 < each * max(len(names), 1) < 1:
        raise ParameterError("the share of the numbers must be above 0, and less than 1 in all")
    top = each * (1 - part) * LEVEL_SHARES[0]
    return NumbersPlan(names, each, part, price.deviation(1.0), price.deviation(top))


def price_of(schema: Schema, allowance: Allowance) -> Price:
    """Return what parts of an allowance buy for the units of a schema."""
    return Price(allowance, schema.rows_per_unit if schema.unit else 1)


def _usual_shares(price: Price, rows: float | None) -> tuple[float, float]:
    """Return the part of the budget for a number with its sum, and what of it the sum takes."""
    counts = MOST_SHARE if rows is None else max(_by_rows(rows, price), LEAST_COUNTS)
    whole = max(counts / (1 - SUM_PART), counts + LEAST_SUM)
    return whole, 1 - counts / whole


def search_share(schema: Schema, price: Price, rows_in: int | None) -> float:
    """Return the part of the budget for each feature whose categories are found (R29).

    It follows from public figures alone: what a search takes of delta must be the same whatever
    was put out before, because a ledger states it and says nothing of other paths.

    Parameters
    ----------
    rows_in
        Number of original rows, if it is public; no noisy one.
    """
    return _share_of_each(schema, UNKNOWN_SHARE if rows_in is None else _by_rows(rows_in, price))


def _by_rows(rows: float, price: Price) -> float:
    signal = max(rows, 1.0) / price.deviation(1.0)
    wanted: float = USUAL_SHARE * (_USUAL_SIGNAL / signal) ** _GROWTH
    return min(max(wanted, USUAL_SHARE), MOST_SHARE)


def _share_of_each(schema: Schema, usual: float) -> float:
    measured = [each for each in schema.features if each.wants_shape or each.private_categories]
    return min(usual, MOST_TOGETHER / max(len(measured), 1))


def check_budget(schema: Schema, budget: Budget) -> None:
    """Refuse a budget that cannot pay for private edges or categories, with the remedy."""
    found = [feature for feature in schema.features if feature.private_categories]
    if found and (budget.epsilon is None or budget.delta is None):
        lacking = "--epsilon for the whole release" if budget.epsilon is None else "--delta"
        raise BudgetError(
            f"feature {found[0].name!r}: its categories are to be found by noisy counts, which "
            "takes an epsilon for the whole release and a delta; give "
            f"{lacking}, or list the categories of the feature"
        )
    wanting = [feature for feature in schema.features if feature.wants_shape]
    if wanting and budget.epsilon is None:
        what = "edges are" if wanting[0].private_edges else "values are"
        if wanting[0].merges_rare:
            raise BudgetError(
                f"feature {wanting[0].name!r}: rare categories are merged by noisy counts, which "
                "takes an epsilon for the whole release; give --epsilon, or leave out rare"
            )
        raise BudgetError(
            f"feature {wanting[0].name!r}: its {what} to be measured, which takes an epsilon for "
            "the whole release; give --epsilon, or list the edges of the feature"
        )
