"""What each method could do with a budget, from public quantities alone.

`plan` settles a recipe for every method and predicts, from the schema and the stated
number of original rows, how far pair tables will be from those of the data. `settle_method`
takes the best of them for ``--method auto``, on the command line and in Python. No data is
read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.once import Steps
from pegsynth.once.fit import block_deviation, margin_weights, split_budget
from pegsynth.options import (
    AUTO,
    DEFAULT_BLOCK_SIZE,
    PEGS_METHODS,
    DrawOptions,
    FitOptions,
)
from pegsynth.privacy import Budget, Guarantee, Ledger
from pegsynth.synthesizers.recipe import Recipe, make_recipe, used_entries
from pegsynth.synthesizers.released_blocks import ONCE, price_of, public_lines

if TYPE_CHECKING:
    from pegsynth.schema import Schema

PLANNED_METHODS = (*PEGS_METHODS, ONCE)


UNIFORM_LOSS = 0.4
MARGINAL_LOSS = 0.1
"""How far a pair table of the data is from that of the prior, in total variation: about
these figures on the built-in data for uniform virtual rows (independent columns of equal
shares) and for marginal ones (independent columns of the right shares)."""

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Option:
    """One method under the budget.

    Parameters
    ----------
    recipe
        The settled release.
    predicted_error
        Predicted total variation of a pair table, sampling noise aside.
    pure, stated
        The guarantee without a delta, and at the stated one.
    virtual_rows
        Virtual rows per entry, averaged over features, A; None for released blocks.
    prior_share
        Predicted share of an average draw that comes from virtual rows or, after reset or
        cap, from the public distribution; None for released blocks.
    noise
        Standard deviation of the noise on a released block; None for the others.
    """

    recipe: Recipe
    predicted_error: float
    pure: Guarantee
    stated: Guarantee
    virtual_rows: float | None = None
    prior_share: float | None = None
    noise: float | None = None

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.recipe.draw.method


@dataclass(frozen=True)
class Plan:
    """All methods under one budget, those that cannot meet it with the reason."""

    options: tuple[Option, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def best(self) -> Option | None:
        """The method with the smallest predicted error."""
        return min(self.options, key=lambda option: option.predicted_error, default=None)

    @property
    def reason(self) -> str:
        """Say why the best method is the best, in one sentence."""
        best = self.best
        if best is None:
            return "no method can meet this budget"
        others = [f"{o.method} {o.predicted_error:.3f}" for o in self.options if o is not best]
        than = f" ({', '.join(others)})" if others else ""
        return (
            f"{best.method}, for its smallest predicted error of pair tables, "
            f"{best.predicted_error:.3f}{than}; predicted from the schema, the budget and the "
            "stated numbers of rows alone"
        )


Asked = Callable[[str], tuple[Budget, DrawOptions]]
"""What was asked for, in the terms of a method; raises where the method does not take it."""


def settle_method(
    method: str,
    schema: Schema,
    fit: FitOptions,
    asked: Asked,
    *,
    epsilon: float | None,
    partial: bool,
) -> tuple[str, str]:
    """Return the method to take and, for ``auto``, why: the same whoever asks.

    Parameters
    ----------
    asked
        Budget and options as they will be used once the method is known. A method that
        does not take all of them is not chosen.
    partial
        Whether features of the original rows are replaced.
    """
    if method != AUTO:
        return method, ""
    if partial:
        return "pegs", "pegs, because features of the original rows are replaced"
    if epsilon is None:
        return "pegs", "pegs, because no total epsilon was stated"
    found = _settled(schema, fit, asked)
    if found.best is None:
        raise _none_can(found)
    return found.best.method, found.reason


def plan(
    schema: Schema,
    budget: Budget,
    fit: FitOptions,
    draw: DrawOptions,
    *,
    block_size: int = DEFAULT_BLOCK_SIZE,
) -> Plan:
    """Settle every method that takes this budget and predict what it would give.

    Options that only one method has are left out for the others.
    """

    def asked(method: str) -> tuple[Budget, DrawOptions]:
        capped = method == "pegs-capped"
        wanted = replace(
            draw,
            method=method,
            visits=draw.visits if capped else None,
            chains=draw.chains if capped else None,
            urn=draw.urn if capped else None,
            block_size=block_size if method == "pegs-rs" else DEFAULT_BLOCK_SIZE,
        )
        return _budget_of(method, budget), wanted

    return _settled(schema, fit, asked)


def _settled(schema: Schema, fit: FitOptions, asked: Asked) -> Plan:
    options, refused = [], []
    for method in PLANNED_METHODS:
        try:
            budget, draw = asked(method)
            options.append(_option(schema, make_recipe(schema, budget, fit, draw)))
        except (BudgetError, ParameterError) as error:
            refused.append((method, str(error)))
    return Plan(tuple(options), tuple(refused))


def _none_can(found: Plan) -> BudgetError:
    """Say why no method can be chosen, once where all say the same."""
    reasons = {reason for _, reason in found.refused}
    if len(reasons) == 1:
        return BudgetError(reasons.pop())
    why = "; ".join(f"{method}: {reason}" for method, reason in found.refused)
    return BudgetError(f"no method can do this ({why})")


def _budget_of(method: str, budget: Budget) -> Budget:
    """Return the budget as a method sees it; only released blocks take l beside epsilon."""
    if budget.epsilon is not None and budget.l is not None and method != ONCE:
        raise BudgetError("only pegs-once takes l beside epsilon")
    return budget


def _option(schema: Schema, recipe: Recipe) -> Option:
    ledger = Ledger(recipe.events, (), recipe.budget.delta or 0.0)
    pure, stated = Ledger(recipe.events).guarantee, ledger.guarantee
    if recipe.draw.method == ONCE:
        noise, error = _released_error(schema, recipe)
        return Option(recipe, error, pure, stated, noise=noise)
    alpha = recipe.numerator / recipe.scale
    factor = recipe.resolution if recipe.prior == "marginal" else 1
    mean_count = sum(schema.category_counts) / len(schema.category_counts)
    virtual = alpha * factor * mean_count
    prior_share = 1 - _data_share(schema, recipe, virtual)
    loss = MARGINAL_LOSS if recipe.prior == "marginal" else UNIFORM_LOSS
    return Option(recipe, prior_share * loss, pure, stated, virtual, prior_share)


def _released_error(schema: Schema, recipe: Recipe) -> tuple[float, float]:
    """Predict the noise on a block of released tables, and the error of pair tables.

    One-way counts are off by their noise; of what pairs add to them, the part is lost that
    the noise of a block of average size would drown.
    """
    counts, steps, price = schema.category_counts, Steps(heads=recipe.heads), price_of(recipe)
    rows_in = recipe.draw.rows_in or (recipe.draw.rows or 1)
    weights = margin_weights(counts, public_lines(schema))
    split = split_budget(price, rows_in, counts, weights, steps)
    one_way = [
        _MEAN_ABSOLUTE_NORMAL * count * price.deviation(split.margins * float(weight)) / 2
        for count, weight in zip(counts, weights, strict=True)
        if weight > 0
    ]
    margins = min(sum(one_way) / len(counts) / rows_in / 2, UNIFORM_LOSS)
    noise = block_deviation(price, split, len(counts))
    cells = math.exp(2 * sum(map(math.log, counts)) / len(counts))
    drowned = _MEAN_ABSOLUTE_NORMAL * noise * cells / (2 * rows_in)
    return noise, margins + MARGINAL_LOSS * drowned / (1 + drowned)


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
