"""What a codec that is measured costs, in words; no data is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pegsynth.categories import delta_for, plan_categories, private_names
from pegsynth.numbers.edges_plan import plan_numbers, price_of, search_share
from pegsynth.numbers.paying import whole_of
from pegsynth.privacy import Budget
from pegsynth.privacy.rounding import display_up
from pegsynth.schema.schema import Schema


def codec_costs(schema: Schema, budget: Budget, rows: int | None) -> Iterator[str]:
    """Yield a line on edges and one on categories, where a release measures them.

    Parameters
    ----------
    rows
        Number of original rows, if it is public; else the most that they can cost is said.
    """
    budget = replace(budget, delta_taken=delta_for(schema, budget.delta))
    whole = whole_of(budget)
    numbers = plan_numbers(schema, whole, rows=rows)
    if numbers.names:
        yield (
            f"Numbers: measuring {_features('edges or shapes', len(numbers.names))} takes at most "
            f"{numbers.together:.1%} of the budget."
        )
    if names := private_names(schema):
        price = price_of(schema, whole)
        share = search_share(schema, price, rows)
        plan = plan_categories(schema, price, share, delta=budget.delta_taken)
        yield (
            f"Categories: finding {_features('categories', len(names))} takes "
            f"{plan.share * len(names):.1%} of the budget and "
            f"{display_up(float(budget.delta_taken))} of delta; a value becomes a category from "
            f"about {plan.threshold:,} rows on."
        )


def _features(what: str, count: int) -> str:
    return f"the {what} of {count} feature{'s' if count > 1 else ''}"
