"""The codec of a table that is itself paid for: edges, shapes and categories (R21, R29).

In go the schema and the budget, both public. `foreseen` says, before any data is read, what bins
and categories there will be and what they cost at most: whatever the data is, a release spends no
more (R11). `codec_costs` says so in words. `paid_codec` measures, through a privacy filter that
holds the whole budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.clipped_sum import SUM_PART
from pegsynth.codec.finding_categories import (
    DELTA_SHARE,
    CategoriesPlan,
    Part,
    find_categories,
    frequent_categories,
    plan_categories,
    private_names,
    provisional_categories,
    settled_categories,
)
from pegsynth.codec.measured_numbers import bins_for, has_sum, measure, provisional, settle
from pegsynth.codec.tree import LEVEL_SHARES, exact_tree
from pegsynth.errors import BudgetError
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.privacy import Allowance, Budget, Event
from pegsynth.privacy.rounding import display_up
from pegsynth.random import RandomStream
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


def plan_numbers(schema: Schema, allowance: Allowance, *, rows: float | None = None) -> NumbersPlan:
    """Plan how numbers are measured out of an allowance for the whole release.

    Parameters
    ----------
    rows
        Number of rows, public or noisy; None for the most that features may take.
    """
    names = tuple(feature.name for feature in schema.features if feature.wants_shape)
    price = price_of(schema, allowance)
    counts = MOST_SHARE if rows is None else max(_by_rows(rows, price), LEAST_COUNTS)
    # The part of the budget for a number with its sum, and what of it the sum takes.
    whole = max(counts / (1 - SUM_PART), counts + LEAST_SUM)
    each, part = _share_of_each(schema, whole), 1 - counts / whole
    top = each * (1 - part) * LEVEL_SHARES[0]
    return NumbersPlan(names, each, part, price.deviation(1.0), price.deviation(top))


def price_of(schema: Schema, allowance: Allowance) -> Price:
    """Return what parts of an allowance buy for the units of a schema."""
    return Price(allowance, schema.rows_per_unit if schema.unit else 1)


def _by_rows(rows: float, price: Price) -> float:
    signal = max(rows, 1.0) / price.deviation(1.0)
    wanted: float = USUAL_SHARE * (_USUAL_SIGNAL / signal) ** _GROWTH
    return min(max(wanted, USUAL_SHARE), MOST_SHARE)


def _share_of_each(schema: Schema, usual: float) -> float:
    measured = [each for each in schema.features if each.wants_shape or each.private_categories]
    return min(usual, MOST_TOGETHER / max(len(measured), 1))


@dataclass(frozen=True)
class CodecBudget:
    """What a codec is paid from, along one route.

    Parameters
    ----------
    budget
        The stated budget, with what searches take of its delta.
    whole
        All of it.
    price
        What parts of it buy.
    """

    schema: Schema
    budget: Budget
    whole: Allowance
    price: Price

    @classmethod
    def of(cls, schema: Schema, budget: Budget) -> CodecBudget:
        """Return what a schema may take of a budget; refuse one that cannot pay for it."""
        check_budget(schema, budget)
        # What all searches take of a stated delta is fixed before any data is read.
        delta = Fraction(budget.delta or 0) * DELTA_SHARE if private_names(schema) else Fraction(0)
        budget = replace(budget, delta_taken=delta)
        whole = whole_of(budget)
        return cls(schema, budget, whole, price_of(schema, whole))

    def numbers(self, rows: float | None) -> NumbersPlan:
        """Plan how numbers are measured, for a number of rows, public or noisy."""
        return plan_numbers(self.schema, self.whole, rows=rows)

    def search(self, rows_in: int | None) -> CategoriesPlan:
        """Plan how categories are looked for (R29).

        It follows from public figures alone: what a search takes of delta must be the same
        whatever was put out before, because a ledger states it and says nothing of other paths.

        Parameters
        ----------
        rows_in
            Number of original rows, if it is public; no noisy one.
        """
        usual = UNKNOWN_SHARE if rows_in is None else _by_rows(rows_in, self.price)
        share = _share_of_each(self.schema, usual)
        return plan_categories(self.schema, self.price, share, delta=self.budget.delta_taken)


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


Counts = Mapping[str, NDArray[np.int64]]

EXACT_DEVIATION = 1.0
"""What bins are chosen by where nothing is perturbed: as if one row were the noise."""


@dataclass(frozen=True)
class PaidCodec:
    """Public edges and categories, as they are or as many as there will be, and what they cost.

    Parameters
    ----------
    schema
        The codebook with edges and categories.
    budget
        The budget with what was spent taken off.
    shapes
        How values lie inside the bins, by name.
    events
        What the ledger says of it.
    """

    schema: Schema
    budget: Budget
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class CodecCounts:
    """What a codec is made of: exact and confidential.

    Parameters
    ----------
    grids
        Counts of the grid of every feature whose numbers are measured.
    candidates
        Values of the features whose categories are private, with their counts.
    """

    grids: Counts = field(default_factory=dict)
    candidates: Iterable[Part] = ()


def wants_codec(schema: Schema) -> bool:
    """Whether edges, shapes or categories of any feature are to be measured."""
    return any(each.wants_shape or each.private_categories for each in schema.features)


def wants_grids(schema: Schema) -> bool:
    """Whether counts on public grids are to be measured: numbers, or what is rare (R31)."""
    return any(feature.wants_shape for feature in schema.features)


def foreseen(schema: Schema, budget: Budget, *, rows: int | None, private: bool) -> PaidCodec:
    """Say what bins and categories there will be, from public figures.

    Parameters
    ----------
    rows
        Number of original rows, or a guess.
    private
        Whether the method claims a guarantee; one that does not measures exactly.
    """
    guess = provisional_categories(schema)
    if not private:
        return PaidCodec(provisional(guess, bins_for(rows or 1, EXACT_DEVIATION)), budget)
    source = CodecBudget.of(schema, budget)
    plan, names = source.numbers(rows), private_names(schema)
    share = Fraction(plan.together)
    if names:
        share += Fraction(source.search(rows).share) * len(names)
    if rows is None and plan.names:
        share += Fraction(COUNT_SHARE)
    paid = Allowance(source.whole.route, source.whole.amount * share)
    return PaidCodec(provisional(guess, plan.bins(rows or 1)), replace(source.budget, paid=paid))


def paid_codec(
    schema: Schema,
    budget: Budget,
    counts: CodecCounts,
    stream: RandomStream,
    *,
    rows_in: int | None,
    private: bool,
    filter_of: Callable[..., PrivacyFilter] = PrivacyFilter,
) -> PaidCodec:
    """Measure edges and shapes, find categories, and say what is left.

    Parameters
    ----------
    counts
        What is measured.
    rows_in
        Number of original rows, if it is public; else the noisy counts tell.
    private
        Whether the method claims a guarantee.
    """
    if not private:
        frequent = frequent_categories(counts.candidates, private_names(schema))
        schema = settled_categories(schema, frequent)
        exact = {name: exact_tree(line, schema[name]) for name, line in counts.grids.items()}
        # The number of rows by the counts at the top of all trees.
        sums = [tree.levels[0].counts.clip(0).sum() for tree in exact.values()]
        bins = bins_for(float(np.mean(sums)) if sums else 1.0, EXACT_DEVIATION)
        settled = settle(schema, exact, bins)
        return PaidCodec(settled.schema, budget, settled.shapes)
    source = CodecBudget.of(schema, budget)
    budget_filter = filter_of(
        source.whole, stream, rows_per_unit=source.price.rows_per_unit, names=schema.names
    )
    rows = rows_in
    if rows is None and counts.grids:
        # It says how much of the budget edges are worth.
        total = next(iter(counts.grids.values())).sum()
        noisy, _ = budget_filter.measure(np.array([total]), COUNT_SHARE, purpose="total")
        rows = max(int(noisy[0]), 1)
    plan = source.numbers(rows)
    found: dict[str, tuple[str, ...]] = {}
    if private_names(schema):
        # By public figures: a noisy number of rows would make delta' differ from path to path.
        found = find_categories(schema, source.search(rows_in), counts.candidates, budget_filter)
    trees = {
        name: measure(
            counts.grids[name],
            schema[name],
            budget_filter,
            plan.share if has_sum(schema[name]) else plan.share * (1 - plan.sum_part),
            index=schema.index(name),
            rows=rows,
            sum_part=plan.sum_part,
        )
        for name in plan.names
    }
    settled = settle(settled_categories(schema, found), trees, plan.bins(rows or 1))
    rest = replace(source.budget, paid=budget_filter.spent)
    return PaidCodec(settled.schema, rest, settled.shapes, budget_filter.done)


def whole_of(budget: Budget) -> Allowance:
    """Return what a budget has for the whole release, and its currency."""
    return budget.whole("pure" if budget.delta is None else "zcdp")


def codec_costs(schema: Schema, budget: Budget, rows: int | None) -> Iterator[str]:
    """Yield a line on edges and one on categories, where a release measures them.

    Parameters
    ----------
    rows
        Number of original rows, if it is public; else the most that they can cost is said.
    """
    source = CodecBudget.of(schema, budget)
    numbers = source.numbers(rows)
    if numbers.names:
        yield (
            f"Numbers: measuring {_features('edges or shapes', len(numbers.names))} takes at most "
            f"{numbers.together:.1%} of the budget."
        )
    if names := private_names(schema):
        plan = source.search(rows)
        yield (
            f"Categories: finding {_features('categories', len(names))} takes "
            f"{plan.share * len(names):.1%} of the budget and "
            f"{display_up(float(source.budget.delta_taken))} of delta; a value becomes a category "
            f"from about {plan.threshold:,} rows on."
        )


def _features(what: str, count: int) -> str:
    return f"the {what} of {count} feature{'s' if count > 1 else ''}"
