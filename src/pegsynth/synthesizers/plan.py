"""What each method could do with a budget, from public quantities alone.

`plan` settles a recipe for every method and predicts, from the schema and the stated
number of original rows, how much of an average draw will be prior instead of data. No
data is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pegsynth.errors import BudgetError
from pegsynth.privacy import Budget, Guarantee, Ledger
from pegsynth.synthesizers.options import DEFAULT_BLOCK_SIZE, PEGS_METHODS, DrawOptions, FitOptions
from pegsynth.synthesizers.recipe import Recipe, make_recipe, used_entries

if TYPE_CHECKING:
    from pegsynth.schema import Schema


UNIFORM_LOSS = 0.4
MARGINAL_LOSS = 0.1
"""How far a pair table of the data is from that of the prior, in total variation: about
these figures on the built-in data for uniform virtual rows (independent columns of equal
shares) and for marginal ones (independent columns of the right shares)."""


@dataclass(frozen=True)
class Option:
    """One method under the budget.

    Parameters
    ----------
    recipe
        The settled release.
    virtual_rows
        Virtual rows per entry, averaged over features, A.
    prior_share
        Predicted share of an average draw that comes from virtual rows or, after reset or
        cap, from the public distribution.
    pure, stated
        The guarantee without a delta, and at the stated one.
    """

    recipe: Recipe
    virtual_rows: float
    prior_share: float
    pure: Guarantee
    stated: Guarantee

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.recipe.draw.method

    @property
    def predicted_error(self) -> float:
        """Predicted total variation of a pair table, sampling noise aside."""
        loss = MARGINAL_LOSS if self.recipe.prior == "marginal" else UNIFORM_LOSS
        return self.prior_share * loss


@dataclass(frozen=True)
class Plan:
    """All methods under one budget, those that cannot meet it with the reason."""

    options: tuple[Option, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def best(self) -> Option | None:
        """The method with the smallest predicted error."""
        return min(self.options, key=lambda option: option.predicted_error, default=None)


def plan(
    schema: Schema,
    budget: Budget,
    fit: FitOptions,
    draw: DrawOptions,
    *,
    block_size: int = DEFAULT_BLOCK_SIZE,
) -> Plan:
    """Settle every method of the pegs family and predict what it would give."""
    options, refused = [], []
    for method in PEGS_METHODS:
        capped = method == "pegs-capped"
        wanted = replace(
            draw,
            method=method,  # type: ignore[arg-type]
            visits=draw.visits if capped else None,
            chains=draw.chains if capped else None,
            urn=draw.urn if capped else None,
            block_size=block_size if method == "pegs-rs" else DEFAULT_BLOCK_SIZE,
        )
        try:
            options.append(_option(schema, make_recipe(schema, budget, fit, wanted)))
        except BudgetError as error:
            refused.append((method, str(error)))
    return Plan(tuple(options), tuple(refused))


def _option(schema: Schema, recipe: Recipe) -> Option:
    alpha = recipe.numerator / recipe.scale
    factor = recipe.resolution if recipe.prior == "marginal" else 1
    mean_count = sum(schema.category_counts) / len(schema.category_counts)
    virtual = alpha * factor * mean_count
    ledger = Ledger(recipe.events, (), recipe.budget.delta or 0.0)
    return Option(
        recipe,
        virtual,
        1 - _data_share(schema, recipe, virtual),
        Ledger(recipe.events).guarantee,
        ledger.guarantee,
    )


def _data_share(schema: Schema, recipe: Recipe, virtual: float) -> float:
    """Predict the share of an average draw that comes from the data."""
    draw = recipe.draw
    rows = (draw.rows or 1) * draw.datasets
    rows_in = draw.rows_in or rows
    entries = used_entries(schema, recipe.heads, recipe.tail_bits)
    held = rows_in / entries
    answered = 1.0
    if draw.method == "pegs-rs":
        # Within a block an entry answers once: distinct entries over visits.
        visits = draw.block_size * draw.sweeps
        answered = entries * (1 - (1 - 1 / entries) ** visits) / visits
    elif draw.method == "pegs-capped":
        answered = min(1.0, (draw.visits or 1) * entries / (rows * draw.sweeps))
    return answered * held / (held + virtual) if held + virtual > 0 else 0.0
