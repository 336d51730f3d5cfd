"""Declared regressions: how near they are, and how often their intervals hold the truth (R26).

``python -m benchmarks.declared_coverage [--rows N] [--releases K] [--share S] ..`` samples invented
discharges again and again, releases every sample by `pegs-once` with private edges and both
regressions declared, draws rows with replicate weights and fits both regressions to their *values*.
The truth is that of 2,000,000 rows, not clipped. ``--share 0`` declares nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.released_numbers import NUMBERS, RESPONSE_ABOVE, private_schema
from pegsynth import fit
from pegsynth.datasets import discharge
from pegsynth.inference import combine
from pegsynth.schema import Schema
from pegsynth.schema.declared import Analysis

Array = NDArray[np.float64]

DELTA = 1e-9
TRUTH_ROWS = 2_000_000
TRUTH_SEED = 987_654
NORMAL = 1.959964
TERMS = ("age.yrs", "sev", "cat", "los")
FORMULA = " + ".join(TERMS)
NAMES = tuple(f"{kind} {term}" for kind in ("linear", "logistic") for term in TERMS)


def declaring(share: float) -> Schema:
    """Return a schema with private edges and both regressions declared."""
    schema = private_schema()
    if not share:
        return schema
    analyses = (
        Analysis(f"charge ~ {FORMULA}", "gaussian", share),
        Analysis(f"I(charge > {RESPONSE_ABOVE}) ~ {FORMULA}", "binomial", share),
    )
    return replace(schema, analyses=analyses)


@dataclass(frozen=True)
class Fitted:
    """Coefficients of both regressions, and their usual standard errors (robust, linear)."""

    estimates: Array
    errors: Array


def fitted(table: pl.DataFrame, weights: Array | None = None) -> Fitted:
    """Fit both regressions to the values of complete rows."""
    kept = table.select(*NUMBERS, "sev", "cat")
    complete = kept.select(pl.all_horizontal(pl.all().is_not_null())).to_series().to_numpy()
    kept = kept.filter(pl.Series(complete))
    columns = [kept["age.yrs"], kept["sev"], kept["cat"] == "Surgical", kept["los"]]
    design = np.column_stack([np.ones(len(kept)), *(c.cast(pl.Float64) for c in columns)])
    charge = kept["charge"].cast(pl.Float64).to_numpy()
    weight = np.ones(len(kept)) if weights is None else weights[complete]
    linear, inverse = _least_squares(design, charge, weight)
    left = charge - design @ linear
    middle = (design * (weight * left**2)[:, None]).T @ design
    logistic, information = _logistic(design, (charge > RESPONSE_ABOVE) * 1.0, weight)
    variances = np.concatenate([np.diag(inverse @ middle @ inverse)[1:], np.diag(information)[1:]])
    return Fitted(np.concatenate([linear[1:], logistic[1:]]), np.sqrt(variances))


def _least_squares(design: Array, response: Array, weight: Array) -> tuple[Array, Array]:
    inverse = np.linalg.inv((design * weight[:, None]).T @ design)
    return inverse @ (design.T @ (weight * response)), inverse


def _logistic(design: Array, response: Array, weight: Array) -> tuple[Array, Array]:
    scale = np.abs(design).max(axis=0)
    scaled = design / scale
    odds = np.zeros(design.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-np.clip(scaled @ odds, -30, 30)))
        curve = (scaled * (weight * (chance * (1 - chance) + 1e-9))[:, None]).T @ scaled
        step = np.linalg.solve(curve, scaled.T @ (weight * (response - chance)))
        odds += step
        if np.abs(step).max() < 1e-9:
            break
    return odds / scale, np.linalg.inv(curve) / np.outer(scale, scale)


@dataclass(frozen=True)
class Setting:
    """Which releases are made."""

    rows: int
    epsilon: float
    share: float
    replicates: int


def release(setting: Setting, seed: int) -> tuple[Fitted, list[Fitted]]:
    """Sample, release and analyse; return the original's fit and those of all weights."""
    table = discharge(setting.rows, seed=seed)
    model = fit(
        table,
        declaring(setting.share),
        method="pegs-once",
        epsilon=setting.epsilon,
        delta=DELTA,
        rows_in=setting.rows,
    )
    rows = model.replicates(setting.replicates, rows=setting.rows)
    names = ["weight", *(f"weight_{k}" for k in range(1, setting.replicates + 1))]
    return fitted(table), [fitted(rows, rows[name].to_numpy()) for name in names]


def lines(setting: Setting, releases: int, seed: int, truth: Array) -> Iterator[str]:
    """Yield a line for each coefficient: coverage, width, error."""
    covered: list[Array] = []
    widths: list[Array] = []
    errors: list[Array] = []
    for number in range(releases):
        original, (main, *others) = release(setting, seed + number)
        found = [
            combine([each.estimates[i] for each in others], rule="replicate-weights", main=q)
            for i, q in enumerate(main.estimates.tolist())
        ]
        ends = np.array([each.interval(0.95) for each in found])
        covered.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        widths.append((ends[:, 1] - ends[:, 0]) / (2 * NORMAL * original.errors))
        errors.append(np.abs(main.estimates / original.estimates - 1))
    for place, name in enumerate(NAMES):
        coverage = fmean(float(each[place]) for each in covered)
        width = median(float(each[place]) for each in widths)
        error = fmean(float(each[place]) for each in errors)
        yield f"| {name} | {coverage:.2f} | {width:.2f} | {error:.3f} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.15, help="of each of the two analyses")
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--truth", type=int, default=TRUTH_ROWS)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    truth = fitted(discharge(chosen.truth, seed=TRUTH_SEED)).estimates
    setting = Setting(chosen.rows, chosen.epsilon, chosen.share, chosen.replicates)
    print("| coefficient | coverage | median width | mean relative error |")
    print("|---|---|---|---|")
    for line in lines(setting, chosen.releases, chosen.seed, truth):
        print(line, flush=True)


if __name__ == "__main__":
    main()
