"""`pegs-once`: released blocks as one of the methods (R11).

A recipe reserves the whole budget before the data is read; fitting spends it through a
purse and replaces the reservation by what was done and what was left. Rows are drawn from
the released tables alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import BudgetError, ModelError, ParameterError, escaped
from pegsynth.once import Diverse, Purse, Released, Steps, draw_rows, release_blocks
from pegsynth.once.draw import LOT, take_rows
from pegsynth.once.purse import Price
from pegsynth.options import DrawOptions, FitOptions
from pegsynth.privacy import Allowance, Budget, Diversity, Event, UnitBound, Unspent
from pegsynth.synthesizers.drawn import clamped_codes, diversity_levels, stated_levels
from pegsynth.synthesizers.progress import Progress, quiet

if TYPE_CHECKING:
    from pegsynth.once.counted import CountedTable
    from pegsynth.once.second_round import Fit
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema
    from pegsynth.synthesizers.model import Codes, Model
    from pegsynth.synthesizers.recipe import Recipe

ONCE = "pegs-once"
MOST_CATEGORIES = 1 << 24
_PART_ROWS = 1 << 16
MOST_APART = (1 << 16) - 1
"""Levels are numbered by 16 bits; merging keeps other features far below that."""


def once_recipe(
    schema: Schema, budget: Budget, fit: FitOptions, draw: DrawOptions, *, scale: int
) -> Recipe:
    """Settle a release of blocks: the whole budget is reserved for what fitting will do."""
    from pegsynth.synthesizers.recipe import Recipe

    if budget.epsilon is None:
        raise BudgetError("pegs-once is paid once for the whole release; state --epsilon")
    if fit.heads == 0:
        raise ParameterError("--heads must be at least 1 for pegs-once; leave it out for 3")
    if fit.order in ("public", "data") or fit.tail_bits not in (0, 1):
        raise ParameterError(
            "--order and --tail-bits are not for pegs-once, which chooses its heads privately"
        )
    if draw.prior is not None or draw.seed_pool is not None or draw.sweeps != 1:
        raise ParameterError("--prior, --seed-pool and --sweeps are not for pegs-once")
    if draw.synthesize:
        raise ParameterError("pegs-once draws whole rows; --synthesize is for pegs, mi and cart")
    if any(feature.parent for feature in schema.features):
        raise ParameterError(
            "pegs-once has no details of a parent; leave `parent` out of the schema or use pegs"
        )
    if max(schema.category_counts) > MOST_CATEGORIES:
        raise ParameterError(f"pegs-once takes at most {MOST_CATEGORIES} categories of a feature")
    levels = diversity_levels(schema, budget, draw)
    under_rules(schema, levels).check(schema.names, schema.category_counts)
    for feature, apart in zip(schema.features, _kept_apart(schema, levels, draw), strict=True):
        if apart and feature.category_count > MOST_APART:
            raise ParameterError(
                f"feature {feature.name!r}: with rules, an l or --where pegs-once takes at most "
                f"{MOST_APART} categories; leave these out or use another method"
            )
    allowance = allowance_of(budget)
    return Recipe(
        fit.heads or Steps().heads,
        0,
        "public",
        None,
        None,
        "uniform",
        "uniform",
        draw,
        budget,
        0,
        scale,
        None,
        0,
        (_around(schema, levels, (Unspent.of(allowance.amount, route=allowance.route),)), ()),
    )


def allowance_of(budget: Budget) -> Allowance:
    """Return what may be spent: rho when a delta was stated, else epsilon."""
    return budget.whole("pure" if budget.delta is None else "zcdp")


def under_rules(schema: Schema, levels: Mapping[int, float]) -> Diverse:
    """Return the l of some features under the rules of their schema."""
    return Diverse.under(levels, schema.rules, schema.category_counts)


def promised(schema: Schema, recipe: Recipe) -> dict[int, float]:
    """Return the l of every feature that the ledger of a recipe names.

    A model is sampled with other options than it was fitted with, and its ledger is not
    written anew.
    """
    named = {
        name for event in recipe.events if isinstance(event, Diversity) for name in event.features
    }
    stated = stated_levels(schema, recipe.budget)
    return {i: level for i, level in stated.items() if escaped(schema.names[i]) in named}


def check_drawing(released: Released, schema: Schema, recipe: Recipe) -> None:
    """Refuse to draw where the l of the ledger would not hold (R7)."""
    diverse = under_rules(schema, promised(schema, recipe))
    diverse.check(schema.names, schema.category_counts)
    diverse.check_given(clamped_codes(schema, recipe.draw), released.order, schema.names)


def _around(
    schema: Schema, levels: Mapping[int, float], spent: tuple[Event, ...]
) -> tuple[Event, ...]:
    """Return the events of a release: unit, what was spent, and l-diversity on top (R7)."""
    unit: tuple[Event, ...] = (
        (UnitBound(rows_per_unit=schema.rows_per_unit, label=escaped(schema.unit)),)
        if schema.unit
        else ()
    )
    names = tuple(escaped(schema.names[i]) for i in sorted(levels))
    diverse: tuple[Event, ...] = (
        (Diversity(l=min(levels.values()), features=names, source="released"),) if levels else ()
    )
    return (*unit, *spent, *diverse)


def steps_of(recipe: Recipe) -> Steps:
    """Return the steps of a recipe; what is made l-diverse is not weighed again (R7)."""
    steps = Steps(heads=recipe.heads)
    return replace(steps, second_round=False, exchange=0) if recipe.budget.l else steps


def fit_once(
    rows_of: Codes | CountedTable,
    schema: Schema,
    recipe: Recipe,
    stream: RandomStream,
    *,
    threads: int = 1,
    progress: Progress = quiet,
    purse_of: Callable[..., Purse] = Purse,
) -> tuple[Released, Fit, Recipe]:
    """Spend the budget on a table; return what may be published and what it cost.

    The table comes as codes, or as who counts it. The audit puts a purse of its own in
    place, which looks on.
    """
    unit = schema.rows_per_unit if schema.unit else 1
    levels = promised(schema, recipe)
    purse = purse_of(
        allowance_of(recipe.budget),
        stream,
        rows_per_unit=unit,
        threads=threads,
        names=schema.names,
    )
    released, ready = release_blocks(
        rows_of,
        schema.category_counts,
        purse,
        stream,
        ordered=[feature.kind != "nominal" for feature in schema.features],
        public=public_lines(schema),
        whole=_kept_apart(schema, levels, recipe.draw),
        diverse=under_rules(schema, levels),
        rows=min(recipe.draw.rows, LOT) if recipe.draw.rows else None,
        steps=steps_of(recipe),
        rules=schema.rules,
        threads=threads,
        progress=progress,
    )
    around = (_around(schema, levels, purse.events), ())
    return released, ready, replace(recipe, around=around)


def public_lines(schema: Schema) -> list[NDArray[np.float64] | None]:
    """Return the public shares of every feature, None where the schema states none."""
    return [
        np.array(feature.shares) / math.fsum(feature.shares) if feature.shares else None
        for feature in schema.features
    ]


def _kept_apart(schema: Schema, levels: Mapping[int, float], draw: DrawOptions) -> list[bool]:
    """Say which features must keep their categories apart: rules and l speak of these."""
    ruled = {feature for rule in schema.rules for feature, _ in rule.forbidden}
    apart = ruled | set(levels) | set(clamped_codes(schema, draw))
    return [feature in apart for feature in range(len(schema.features))]


def draw_once(
    model: Model, recipe: Recipe, rows: int, stream: RandomStream, *, first: bool, threads: int
) -> Iterator[NDArray[np.uint32]]:
    """Draw rows from the released tables; the pool that fitting left serves the first.

    Under an l it does not: the blocks that were chosen by it tell something of its rows.
    """
    released, given = model.released, clamped_codes(model.schema, recipe.draw)
    levels = promised(model.schema, recipe)
    if released is None:
        raise ModelError("this model holds no released blocks; fit it with --method pegs-once")
    ready = None if given or levels else model.ready
    if first and ready is not None and recipe.draw.rows == rows <= LOT:
        return _in_parts(iter([take_rows(released, ready, rows, stream)]))
    lots = draw_rows(
        released,
        rows,
        stream,
        steps=steps_of(recipe),
        rules=model.schema.rules,
        diverse=under_rules(model.schema, levels),
        given=given,
        threads=threads,
    )
    return _in_parts(lots)


def _in_parts(lots: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint32]]:
    """Yield lots in parts, so that decoding holds little at a time."""
    for lot in lots:
        for start in range(0, max(len(lot), 1), _PART_ROWS):
            yield lot[start : start + _PART_ROWS]


def price_of(recipe: Recipe) -> Price:
    """Return what parts of a recipe's budget buy, for a prediction."""
    units = [event.rows_per_unit for event in recipe.events if isinstance(event, UnitBound)]
    return Price(allowance_of(recipe.budget), max(units, default=1))
