"""Small tables and slow twins for the imputation tests."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import pegsynth
from pegsynth.codec.codec import encode
from pegsynth.methods.baselines import glm_fit, trees
from pegsynth.methods.baselines.glm import SCORED_ABOVE, Design, GlmModel
from pegsynth.methods.baselines.target_fits import RowsToFit
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

SCORED = {"auto": SCORED_ABOVE, "always": 0, "never": 1_000}
"""From how many categories on features enter a regression as scores."""


def rows_to_fit(codes, schema, options) -> RowsToFit:
    """Take what is said of the rows out of the options of a fit."""
    named = ("targets", "sample_weight", "max_rows")
    rows = RowsToFit.of(codes, schema, **{n: options.pop(n) for n in named if n in options})
    work = {n: options.pop(n) for n in ("threads", "progress") if n in options}
    return replace(rows, **work)


def fit_glm(codes, schema, *, scores="auto", **options) -> GlmModel:
    rows = rows_to_fit(codes, schema, options)
    return glm_fit.fit_glm(rows, glm_fit.Tuning(scored_above=SCORED[scores], **options))


def fit_cart(codes, schema, *, words, **options) -> trees.TreeModel:
    rows = rows_to_fit(codes, schema, options)
    return trees.fit_trees(rows, replace(trees.CART_TREE, **options), words=words)


def fit_forest(codes, schema, *, words, **options) -> trees.TreeModel:
    rows = rows_to_fit(codes, schema, options)
    return trees.fit_trees(rows, replace(trees.FOREST_TREES, **options), words=words)


def nominal(name: str, count: int, **options) -> Feature:
    return Feature(name, "nominal", tuple(f"{name}{k}" for k in range(count)), **options)


def mixed_schema() -> Schema:
    """Three kinds of features, with special codes."""
    return Schema(
        (
            nominal("group", 3),
            Feature("size", "numeric", edges=(0.0, 1.0, 2.0, 5.0, 20.0), missing=("NA",)),
            Feature("grade", "ordinal", ("low", "middle", "high"), not_applicable=("-",)),
            nominal("colour", 4, unknown="category"),
        )
    )


def dependent_codes(schema: Schema, rows: int, seed: int = 1) -> np.ndarray:
    """Codes in which every feature depends on the one before."""
    random = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for count in schema.category_counts:
        drawn = random.integers(0, count, rows)
        if columns:
            follows = random.random(rows) < 0.6
            drawn = np.where(follows, columns[-1] % count, drawn)
        columns.append(drawn)
    return np.stack(columns, axis=1).astype(np.uint8)


@cache
def discharge() -> tuple[Schema, np.ndarray, np.ndarray]:
    """Return the schema, 1,500 rows to fit to and 3,000 others of the built-in data."""
    schema = pegsynth.datasets.discharge_schema()
    codes = encode(pegsynth.datasets.discharge(4_500, 5), schema)
    return schema, codes[:1_500], codes[1_500:]


def words(seed: int = 1):
    return RandomStream(seed).substream()


def dense(design: Design, codes: np.ndarray, target: int) -> np.ndarray:
    """Write the design matrix out, own columns of the target and the intercept left away."""
    out = np.zeros((len(codes), design.columns - 1))
    for row, line in enumerate(codes):
        for feature, code in enumerate(line):
            if feature != target:
                cell = design.cell_start[feature] + code
                column = np.searchsorted(design.first_cell, cell, side="right") - 1
                out[row, column] += design.values[cell]
    return out


def log_loss(probabilities: np.ndarray, outcome: np.ndarray) -> float:
    return float(-np.mean(np.log(probabilities[np.arange(len(outcome)), outcome])))


def brier(probabilities: np.ndarray, outcome: np.ndarray) -> float:
    wanted = np.eye(probabilities.shape[1])[outcome]
    return float(np.mean(np.sum((probabilities - wanted) ** 2, axis=1)))


def marginal(codes: np.ndarray, count: int) -> np.ndarray:
    return (np.bincount(codes, minlength=count) + 0.5) / (len(codes) + 0.5 * count)
