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
from pegsynth.sampling.conditional import ConditionalModel, in_chunks, sample_conditional, sweep
from pegsynth.schema.rules import conditioned
from pegsynth.synthesizers.bootstrap import Bootstrap
from pegsynth.synthesizers.contingency import ContingencyTable
from pegsynth.synthesizers.drawn import clamped_codes, drawn_features
from pegsynth.synthesizers.loglinear import fit_loglinear
from pegsynth.synthesizers.marginal import MarginalTable
from pegsynth.synthesizers.released_blocks import ONCE, draw_once

if TYPE_CHECKING:
    from pegsynth.synthesizers.model import Codes, Model
    from pegsynth.synthesizers.recipe import Recipe

Rows = Iterator[NDArray[np.uint32]]

TABLE_CHUNK = 1 << 17


def draw_tables(
    model: Model,
    recipe: Recipe,
    pool: SeedPool,
    rows: int,
    datasets: int,
    stream: RandomStream,
    *,
    threads: int = 1,
) -> list[Rows]:
    """Return K datasets of n rows as streams of code chunks."""
    if recipe.draw.method == ONCE:
        return [
            draw_once(model, recipe, rows, stream, first=number == 0, threads=threads)
            for number in range(datasets)
        ]
    if recipe.draw.method == "marginal":
        return _marginal(model, recipe, rows, datasets, stream)
    draw: Callable[[], Rows] = {
        "contingency": lambda: _contingency(model, recipe, rows, stream),
        "bootstrap": lambda: _bootstrap(model, recipe, rows, stream),
    }.get(recipe.draw.method, lambda: _imputed(model, recipe, pool, rows, stream))
    return [draw() for _ in range(datasets)]


def replace_features(
    model: Model, recipe: Recipe, datasets: int, stream: RandomStream
) -> list[Rows]:
    """Return the original rows with the chosen features drawn anew, K times."""
    return [
        iter(
            [
                sweep(
                    _conditionals(model, recipe, stream),
                    _originals(model).astype(np.uint32),
                    targets=drawn_features(model.schema, recipe.draw),
                    category_counts=model.schema.category_counts,
                    rules=model.schema.rules,
                    numerator=recipe.numerator,
                    scale=recipe.scale,
                    words=stream.substream(),
                    sweeps=recipe.draw.sweeps,
                )
            ]
        )
        for _ in range(datasets)
    ]


def _conditionals(model: Model, recipe: Recipe, stream: RandomStream) -> ConditionalModel:
    """Return the fitted conditionals, or a fresh draw of them for proper synthesis (R16)."""
    if model.conditionals is None:
        raise ModelError("this model holds no fitted conditionals; use pegs synthesize")
    if not recipe.draw.proper:
        return model.conditionals
    from pegsynth.imputation import bayesian_bootstrap
    from pegsynth.synthesizers.imputing import fit_conditionals
    from pegsynth.synthesizers.progress import quiet

    rows = _originals(model)
    weights = bayesian_bootstrap(len(rows), stream.substream())
    return fit_conditionals(
        rows,
        model.schema,
        recipe.draw.method,
        stream,
        threads=1,
        progress=quiet,
        sample_weight=weights,
    )


def _originals(model: Model) -> Codes:
    if model.originals is None:
        raise ModelError("this model holds no original rows; use pegs synthesize or pegs release")
    return model.originals


def _contingency(model: Model, recipe: Recipe, rows: int, stream: RandomStream) -> Rows:
    """One big integer per row decides between a row of the table and a uniform one (R9).

    Given values condition the table exactly: only matching rows remain, and the given
    features have one category left.
    """
    clamped = clamped_codes(model.schema, recipe.draw)
    counts = tuple(
        1 if feature in clamped else count
        for feature, count in enumerate(model.schema.category_counts)
    )
    codes = _matching(_originals(model), clamped).astype(np.uint32)
    codes[:, list(clamped)] = 0
    rules = conditioned(model.schema.rules, clamped)
    table = (
        fit_loglinear(codes, counts) if recipe.draw.log_linear else ContingencyTable(codes, counts)
    )

    def draw(count: int, words: Words) -> NDArray[np.uint32]:
        drawn = table.draw(
            count, numerator=recipe.numerator, scale=recipe.scale, words=words, rules=rules
        )
        for feature, code in clamped.items():
            drawn[:, feature] = code
        return drawn

    return in_chunks(rows, stream, draw, chunk=TABLE_CHUNK)


def _matching(codes: Codes, clamped: dict[int, int]) -> Codes:
    """Return the rows that hold the given values."""
    chosen = np.ones(len(codes), dtype=bool)
    for feature, code in clamped.items():
        chosen &= codes[:, feature] == code
    return codes[chosen]


def _bootstrap(model: Model, recipe: Recipe, rows: int, stream: RandomStream) -> Rows:
    codes = _matching(_originals(model), clamped_codes(model.schema, recipe.draw))
    table, rules = Bootstrap(codes), model.schema.rules
    return in_chunks(
        rows,
        stream,
        lambda count, words: table.draw(count, words=words, rules=rules),
        chunk=TABLE_CHUNK,
    )


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
    return sample_conditional(
        _conditionals(model, recipe, stream),
        pool,
        rows,
        targets=drawn_features(model.schema, recipe.draw),
        category_counts=model.schema.category_counts,
        rules=model.schema.rules,
        numerator=recipe.numerator,
        scale=recipe.scale,
        stream=stream,
        sweeps=recipe.draw.sweeps,
    )
