"""Draws of the methods that work on the table itself and not on hashed blocks.

Each takes the fitted model, the settled recipe and K, and yields code rows; what they cost
was settled by the recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError
from pegsynth.perturb import Prior, uniform_weights
from pegsynth.random import RandomStream, Words
from pegsynth.sampling import SeedPool
from pegsynth.sampling.conditional import in_chunks, sample_conditional
from pegsynth.synthesizers.bootstrap import Bootstrap
from pegsynth.synthesizers.contingency import ContingencyTable
from pegsynth.synthesizers.marginal import MarginalTable

if TYPE_CHECKING:
    from pegsynth.synthesizers.model import Codes, Model
    from pegsynth.synthesizers.recipe import Recipe

Rows = Iterator[NDArray[np.uint32]]


def draw_tables(
    model: Model, recipe: Recipe, pool: SeedPool, rows: int, datasets: int, stream: RandomStream
) -> list[Rows]:
    """Return K datasets of n rows as streams of code chunks."""
    if recipe.draw.method == "marginal":
        return _marginal(model, recipe, rows, datasets, stream)
    draw: Callable[[], Rows] = {
        "contingency": lambda: _contingency(model, recipe, rows, stream),
        "bootstrap": lambda: _bootstrap(model, rows, stream),
    }.get(recipe.draw.method, lambda: _imputed(model, recipe, pool, rows, stream))
    return [draw() for _ in range(datasets)]


def _originals(model: Model) -> Codes:
    if model.originals is None:
        raise ModelError("this model holds no original rows; use pegs synthesize or pegs release")
    return model.originals


def _contingency(model: Model, recipe: Recipe, rows: int, stream: RandomStream) -> Rows:
    """One big integer per row decides between a row of the table and a uniform one (R9)."""
    table = ContingencyTable(_originals(model), model.schema.category_counts)

    def draw(count: int, words: Words) -> NDArray[np.uint32]:
        return table.draw(
            count,
            numerator=recipe.numerator,
            scale=recipe.scale,
            words=words,
            rules=model.schema.rules,
        )

    return in_chunks(rows, stream, draw)


def _bootstrap(model: Model, rows: int, stream: RandomStream) -> Rows:
    table = Bootstrap(_originals(model))
    rules = model.schema.rules
    return in_chunks(rows, stream, lambda count, words: table.draw(count, words=words, rules=rules))


def _marginal(
    model: Model, recipe: Recipe, rows: int, datasets: int, stream: RandomStream
) -> list[Rows]:
    """Urns that start anew for every dataset (R17); T was settled with the price."""
    from pegsynth.synthesizers.model import one_way_counts
    from pegsynth.synthesizers.recipe import shape_of

    counts = model.schema.category_counts
    prior = Prior(uniform_weights(counts), (recipe.numerator,) * len(counts), recipe.scale)
    most = shape_of(model.schema, recipe.draw).visits if recipe.draws is not None else None
    tables = MarginalTable(tuple(one_way_counts(model.blocks))).draw_datasets(
        rows, datasets, prior=prior, stream=stream, rules=model.schema.rules, most_draws=most
    )
    return [iter([table]) for table in tables]


def _imputed(model: Model, recipe: Recipe, pool: SeedPool, rows: int, stream: RandomStream) -> Rows:
    """Sequential draws from a seed row, perturbed for pmi (R8)."""
    if model.conditionals is None:
        raise ModelError("this model holds no fitted conditionals; use pegs synthesize")
    return sample_conditional(
        model.conditionals,
        pool,
        rows,
        targets=range(len(model.schema.features)),
        category_counts=model.schema.category_counts,
        rules=model.schema.rules,
        numerator=recipe.numerator,
        scale=recipe.scale,
        stream=stream,
        sweeps=recipe.draw.sweeps,
    )
